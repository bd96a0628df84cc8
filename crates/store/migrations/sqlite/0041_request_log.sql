-- Refused requests of programs, the newest of each account.
CREATE TABLE refused_request (
    account_id INTEGER NOT NULL,
    at_us      INTEGER NOT NULL,
    token      TEXT    NOT NULL,
    method     TEXT    NOT NULL,
    route      TEXT    NOT NULL,
    status     INTEGER NOT NULL,
    error      INTEGER,
    message    TEXT    NOT NULL,
    PRIMARY KEY (account_id, at_us)
) WITHOUT ROWID;
