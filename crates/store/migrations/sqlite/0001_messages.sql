-- A message for each recipient. IDs ascend, so an insert only ever touches the right edge of the tree, and an
-- unscheduled message touches no index at all. What callers write freely (body, dlr_url) is kept as UTF-8 bytes,
-- because a PostgreSQL text cannot hold U+0000 and both databases are to give back exactly what was sent.
CREATE TABLE message (
    id           INTEGER PRIMARY KEY,
    account_id   INTEGER NOT NULL,
    recipient    INTEGER NOT NULL,
    originator   TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    coding       INTEGER NOT NULL,
    coding_given INTEGER NOT NULL,
    udh          BLOB,
    parts        INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    dlr_url      BLOB,
    test_mode    INTEGER,
    accepted_us  INTEGER NOT NULL,
    scheduled_us INTEGER,
    expires_us   INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    final_us     INTEGER
);

-- state 1: waits for the time that its sender asked for.
CREATE INDEX message_scheduled ON message (account_id, scheduled_us, id) WHERE state = 1;

-- The work that waits, the most urgent lane and the earliest time first.
CREATE TABLE queue (
    lane    INTEGER NOT NULL,
    due_us  INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (lane, due_us, id)
) WITHOUT ROWID;

-- One row: the first message ID that no node has reserved.
CREATE TABLE id_block (
    next INTEGER NOT NULL
);
INSERT INTO id_block (next) VALUES (1);

-- What each Idempotency-Key was answered with.
CREATE TABLE idempotency (
    account_id INTEGER NOT NULL,
    key        BLOB    NOT NULL,
    body       BLOB    NOT NULL,
    first_id   INTEGER NOT NULL,
    messages   INTEGER NOT NULL,
    parts      INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,
    PRIMARY KEY (account_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_expires ON idempotency (expires_us);
