-- report: what a lookup's caller is told, when a receipt brings that before the carrier's answer is stored. Rows are
-- numbered as they come, so that the oldest are found at the beginning of the table, without an index by time, and that
-- receipts change rows which lie together, however carriers name their parts.
DROP INDEX transit_taken;
ALTER TABLE transit RENAME TO transit_before;
CREATE TABLE transit (
    number    INTEGER PRIMARY KEY,
    carrier   TEXT    NOT NULL,
    reference BLOB    NOT NULL,
    id        INTEGER,
    part      INTEGER,
    parts     INTEGER,
    taken_us  INTEGER NOT NULL,
    status    INTEGER,
    error     INTEGER,
    report    TEXT,
    UNIQUE (carrier, reference)
);
INSERT INTO transit (carrier, reference, id, part, parts, taken_us, status, error)
SELECT carrier, reference, id, part, parts, taken_us, status, error FROM transit_before ORDER BY taken_us;
DROP TABLE transit_before;

-- How the carriers of each node do, as the node noted it last; forgotten with the node. health: up, strained or down.
-- waiting: messages in the node's memory, under_way: parts. The note is bytes: a carrier may be quoted in it.
CREATE TABLE carrier (
    node      INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    health    TEXT    NOT NULL,
    links_up  INTEGER NOT NULL,
    links     INTEGER NOT NULL,
    note      BLOB,
    waiting   INTEGER NOT NULL,
    under_way INTEGER NOT NULL,
    at_us     INTEGER NOT NULL,
    PRIMARY KEY (node, name)
) WITHOUT ROWID;

-- What a message itself tells is not stored again with its report: without url, the address is the message's dlr_url;
-- without payload, the text is a lookup's result or is made from the message's status, error and network. A message is
-- never forgotten before its reports. due_us is 0 when it does not wait, so that the row does not grow by its end.
DROP INDEX callback_message;
DROP INDEX callback_parked;
ALTER TABLE callback RENAME TO callback_before;
CREATE TABLE callback (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    url        BLOB,
    payload    TEXT,
    created_us INTEGER NOT NULL,
    due_us     INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    kind       INTEGER NOT NULL
);
-- Receivers know reports by their IDs, so that none is given out again, whatever was forgotten since.
INSERT INTO sqlite_sequence (name, seq) SELECT 'callback', seq FROM sqlite_sequence WHERE name = 'callback_before';
INSERT INTO callback (id, account_id, message_id, url, payload, created_us, due_us, state, tries, kind)
SELECT id, account_id, message_id, url, payload, created_us, due_us, state, tries, kind FROM callback_before;
DROP TABLE callback_before;
CREATE INDEX callback_message ON callback (message_id);
CREATE INDEX callback_parked ON callback (id) WHERE state = 1;

-- Callback and number of a try in one: id is 1048576 times the callback's ID, plus the number. A table by such a key is
-- appended to in whole pages; by a key of two columns, its last pages were written again and again.
ALTER TABLE callback_attempt RENAME TO callback_attempt_before;
CREATE TABLE callback_attempt (
    id         INTEGER PRIMARY KEY,
    at_us      INTEGER NOT NULL,
    status     INTEGER,
    elapsed_ms INTEGER NOT NULL,
    body       BLOB    NOT NULL,
    address    TEXT,
    reason     BLOB    NOT NULL
);
INSERT INTO callback_attempt (id, at_us, status, elapsed_ms, body, address, reason)
SELECT callback_id * 1048576 + number, at_us, status, elapsed_ms, body, address, reason FROM callback_attempt_before
ORDER BY callback_id, number;
DROP TABLE callback_attempt_before;
