-- Sessions of SMPP users that submit messages, of those that binds counts. Nodes of an older version leave it at 0.
ALTER TABLE smpp_bind ADD COLUMN senders BIGINT NOT NULL DEFAULT 0;

-- What each node last reported about its sessions. number: unique on its node; report: JSON. Rows of nodes that are not
-- alive do not count.
CREATE TABLE smpp_session (
    node    BIGINT NOT NULL,
    number  BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    report  TEXT   NOT NULL,
    PRIMARY KEY (node, number)
) WITH (fillfactor = 50);
CREATE INDEX smpp_session_user ON smpp_session (user_id);
