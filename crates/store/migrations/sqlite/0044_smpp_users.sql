-- What customers bind with by SMPP. password: a slow hash; allow_ips, countries, binds: separated by spaces; senders: one
-- on each line. An empty list has no limit, and neither has NULL.
CREATE TABLE smpp_user (
    id             INTEGER PRIMARY KEY,
    account_id     INTEGER NOT NULL REFERENCES account (id),
    system_id      TEXT    NOT NULL,
    password       TEXT    NOT NULL,
    allow_ips      TEXT    NOT NULL,
    senders        TEXT    NOT NULL,
    countries      TEXT    NOT NULL,
    max_binds      INTEGER,
    max_per_second INTEGER,
    binds          TEXT    NOT NULL,
    receipt_date   TEXT    NOT NULL,
    receipt_id     TEXT    NOT NULL,
    receipt_error  TEXT    NOT NULL,
    created_us     INTEGER NOT NULL,
    revoked_us     INTEGER
);
CREATE UNIQUE INDEX smpp_user_system_id ON smpp_user (system_id) WHERE revoked_us IS NULL;

-- How many sessions of a user each node has. Rows of nodes that are not alive do not count.
CREATE TABLE smpp_bind (
    user_id INTEGER NOT NULL,
    node    INTEGER NOT NULL,
    binds   INTEGER NOT NULL,
    PRIMARY KEY (user_id, node)
) WITHOUT ROWID;
