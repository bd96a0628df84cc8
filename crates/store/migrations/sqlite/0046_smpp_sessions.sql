-- Sessions of SMPP users that submit messages, of those that binds counts. Nodes of an older version leave it at 0.
ALTER TABLE smpp_bind ADD COLUMN senders INTEGER NOT NULL DEFAULT 0;

-- What each node last reported about its sessions. number: unique on its node; report: JSON. Rows of nodes that are not
-- alive do not count.
CREATE TABLE smpp_session (
    node    INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    report  TEXT    NOT NULL,
    PRIMARY KEY (node, number)
) WITHOUT ROWID;
CREATE INDEX smpp_session_user ON smpp_session (user_id);
