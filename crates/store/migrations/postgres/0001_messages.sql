-- A message for each recipient. An unscheduled message touches no index but the primary key. What callers write
-- freely (body, dlr_url) is kept as UTF-8 bytes, because a PostgreSQL text cannot hold U+0000 and both databases
-- are to give back exactly what was sent.
CREATE TABLE message (
    id           BIGINT   PRIMARY KEY,
    account_id   BIGINT   NOT NULL,
    recipient    BIGINT   NOT NULL,
    originator   TEXT     NOT NULL,
    body         BYTEA    NOT NULL,
    coding       SMALLINT NOT NULL,
    coding_given BOOLEAN  NOT NULL,
    udh          BYTEA,
    parts        SMALLINT NOT NULL,
    priority     SMALLINT NOT NULL,
    dlr_url      BYTEA,
    test_mode    SMALLINT,
    accepted_us  BIGINT   NOT NULL,
    scheduled_us BIGINT,
    expires_us   BIGINT   NOT NULL,
    state        SMALLINT NOT NULL,
    final_us     BIGINT
);

-- state 1: waits for the time that its sender asked for.
CREATE INDEX message_scheduled ON message (account_id, scheduled_us, id) WHERE state = 1;

-- The work that waits, the most urgent lane and the earliest time first.
CREATE TABLE queue (
    lane    SMALLINT NOT NULL,
    due_us  BIGINT   NOT NULL,
    id      BIGINT   NOT NULL,
    attempt SMALLINT NOT NULL,
    PRIMARY KEY (lane, due_us, id)
);

-- One row: the first message ID that no node has reserved.
CREATE TABLE id_block (
    next BIGINT NOT NULL
);
INSERT INTO id_block (next) VALUES (1);

-- What each Idempotency-Key was answered with.
CREATE TABLE idempotency (
    account_id BIGINT  NOT NULL,
    key        BYTEA   NOT NULL,
    body       BYTEA   NOT NULL,
    first_id   BIGINT  NOT NULL,
    messages   BIGINT  NOT NULL,
    parts      BIGINT  NOT NULL,
    expires_us BIGINT  NOT NULL,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_expires ON idempotency (expires_us);
