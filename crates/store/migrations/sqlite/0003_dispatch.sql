-- How a message ended. One with a final_us has come to its end and changes no more: cancelled when it has no status,
-- else as status and error say. parts_left is kept only for a message of which some parts were delivered and others
-- are still out.
ALTER TABLE message ADD COLUMN status INTEGER;
ALTER TABLE message ADD COLUMN error INTEGER;
ALTER TABLE message ADD COLUMN parts_left INTEGER;

-- Each message has exactly one row here until it ends. owner: 0 nobody, else the node that works on it; -1 (with lane 0
-- and the message's expires_us as due_us) a carrier that took it and has not reported, so that the beginning of that
-- range is what expires next. Claims read only the beginning of (0, lane), however much is scheduled behind it, and what
-- a dead node held is one range.
ALTER TABLE queue RENAME TO queue_before;
CREATE TABLE queue (
    owner   INTEGER NOT NULL,
    lane    INTEGER NOT NULL,
    due_us  INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (owner, lane, due_us, id)
) WITHOUT ROWID;
INSERT INTO queue (owner, lane, due_us, id, attempt) SELECT 0, lane, due_us, id, attempt FROM queue_before;
DROP TABLE queue_before;

-- The nodes that live. IDs are never used twice, so that a claim of a node that was given up fits nobody.
CREATE TABLE node (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    alive_until_us INTEGER NOT NULL
);

-- What carriers call the parts that they took, and how those ended (status, error: NULL until reported). part counts
-- from 1, parts is how many names the carrier gave for the whole message. A receipt that comes before the carrier's
-- answer is stored is a row without id: whoever comes second finds the first by the primary key, so that none is lost
-- between two transactions. References are bytes: a carrier may write anything.
CREATE TABLE transit (
    carrier   TEXT    NOT NULL,
    reference BLOB    NOT NULL,
    id        INTEGER,
    part      INTEGER,
    parts     INTEGER,
    taken_us  INTEGER NOT NULL,
    status    INTEGER,
    error     INTEGER,
    PRIMARY KEY (carrier, reference)
) WITHOUT ROWID;
CREATE INDEX transit_taken ON transit (taken_us);

-- Reports to callers. state: 0 waiting, 1 parked, 2 done. While it waits, due_us is that of its row in callback_queue.
CREATE TABLE callback (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    url        BLOB    NOT NULL,
    payload    TEXT    NOT NULL,
    created_us INTEGER NOT NULL,
    due_us     INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    tries      INTEGER NOT NULL
);
CREATE INDEX callback_message ON callback (message_id);
CREATE INDEX callback_parked ON callback (id) WHERE state = 1;

-- The reports that wait. owner: 0 nobody, else the node that holds it.
CREATE TABLE callback_queue (
    owner   INTEGER NOT NULL,
    due_us  INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (owner, due_us, id)
) WITHOUT ROWID;

-- Every try to deliver a report, counted from 1.
CREATE TABLE callback_attempt (
    callback_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    at_us       INTEGER NOT NULL,
    status      INTEGER,
    elapsed_ms  INTEGER NOT NULL,
    body        BLOB    NOT NULL,
    address     TEXT,
    reason      BLOB    NOT NULL,
    PRIMARY KEY (callback_id, number)
) WITHOUT ROWID;
