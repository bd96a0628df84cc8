-- One-time codes that accounts have sent. state: 0 pending, 1 approved, 2 expired or replaced, 3 failed. prefix: the calling
-- code of the number and the first three digits after it.
CREATE TABLE verification (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    prefix     INTEGER NOT NULL,
    digits     INTEGER NOT NULL,
    code_hash  BLOB NOT NULL,
    code_salt  BLOB NOT NULL,
    state      INTEGER NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 0,
    created_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
);
CREATE UNIQUE INDEX verification_pending ON verification (account_id, number) WHERE state = 0;
CREATE INDEX verification_prefix ON verification (account_id, prefix, created_us, state);
CREATE INDEX verification_number ON verification (number);
CREATE INDEX verification_created ON verification (created_us);
