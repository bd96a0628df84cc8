-- The accounts' own replies to words such as STOP. request: 0 STOP, 1 START, 2 HELP. language: '' for all that have no
-- text of their own. body: '' for no reply.
CREATE TABLE account_reply (
    account_id BIGINT NOT NULL REFERENCES account (id),
    request    SMALLINT NOT NULL,
    language   TEXT COLLATE "C" NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (account_id, request, language)
);

-- Replies that are not sent yet. id: the message in inbound that they reply to.
CREATE TABLE inbound_reply (
    id         BIGINT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    body       TEXT NOT NULL
);
