-- The accounts' own replies to words such as STOP. request: 0 STOP, 1 START, 2 HELP. language: '' for all that have no
-- text of their own. body: '' for no reply.
CREATE TABLE account_reply (
    account_id INTEGER NOT NULL,
    request    INTEGER NOT NULL,
    language   TEXT NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (account_id, request, language)
) WITHOUT ROWID;

-- Replies that are not sent yet. id: the message in inbound that they reply to.
CREATE TABLE inbound_reply (
    id         INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL,
    body       TEXT NOT NULL
);
