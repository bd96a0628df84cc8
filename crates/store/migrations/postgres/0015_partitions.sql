-- History by day, so that a day is forgotten by dropping tables. Message IDs carry the day (`postgres/days.rs`): those of
-- a day begin at (days since 2026-01-01) * 2^32. What is below the second day of 2026 stands in the partition "before":
-- all that was stored before this step, what comes from another database, and news of senders, which stand under the
-- sender's ID. There is no default partition: a new day could be attached only after a look at all that is in it.
ALTER TABLE message RENAME TO message_before;
ALTER INDEX message_pkey RENAME TO message_before_pkey;
ALTER INDEX message_scheduled RENAME TO message_before_scheduled;
ALTER INDEX message_found RENAME TO message_before_found;
CREATE TABLE message (LIKE message_before INCLUDING DEFAULTS, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE INDEX message_scheduled ON message (account_id, scheduled_us, id) WHERE state = 1 AND channel = 0;
CREATE INDEX message_found ON message ((id >> 11), account_id, recipient, id);
ALTER TABLE message ATTACH PARTITION message_before FOR VALUES FROM (MINVALUE) TO (4294967296);

-- The tries of a report stand with it, and so under its message. They are written anew: it takes a while.
ALTER TABLE callback_attempt RENAME TO callback_attempt_old;
ALTER INDEX callback_attempt_pkey RENAME TO callback_attempt_old_pkey;
CREATE TABLE callback_attempt (
    callback_id BIGINT  NOT NULL,
    number      INTEGER NOT NULL,
    message_id  BIGINT  NOT NULL,
    at_us       BIGINT  NOT NULL,
    status      INTEGER,
    elapsed_ms  BIGINT  NOT NULL,
    body        BYTEA   NOT NULL,
    address     TEXT,
    reason      BYTEA   NOT NULL,
    PRIMARY KEY (callback_id, number, message_id)
) PARTITION BY RANGE (message_id);
CREATE TABLE callback_attempt_before PARTITION OF callback_attempt FOR VALUES FROM (MINVALUE) TO (4294967296);
INSERT INTO callback_attempt (callback_id, number, message_id, at_us, status, elapsed_ms, body, address, reason)
SELECT a.callback_id, a.number, c.message_id, a.at_us, a.status, a.elapsed_ms, a.body, a.address, a.reason
FROM callback_attempt_old AS a JOIN callback AS c ON c.id = a.callback_id;
DROP TABLE callback_attempt_old;

-- Whoever knows the message of a report finds it in one partition; by its ID alone it is looked for in all of them.
-- Partitioned tables have identity columns only since PostgreSQL 17, so the numbers go on from a sequence of their own.
CREATE SEQUENCE callback_number;
SELECT setval('callback_number', nextval(pg_get_serial_sequence('callback', 'id')), FALSE);
ALTER TABLE callback ALTER COLUMN id DROP IDENTITY;
ALTER TABLE callback DROP CONSTRAINT callback_pkey;
ALTER TABLE callback RENAME TO callback_before;
ALTER TABLE callback_before ADD PRIMARY KEY (id, message_id);
ALTER INDEX callback_message RENAME TO callback_before_message;
ALTER INDEX callback_parked RENAME TO callback_before_parked;
ALTER INDEX callback_parked_account RENAME TO callback_before_parked_account;
CREATE TABLE callback (LIKE callback_before INCLUDING DEFAULTS, PRIMARY KEY (id, message_id))
    PARTITION BY RANGE (message_id);
CREATE INDEX callback_message ON callback (message_id);
CREATE INDEX callback_parked ON callback (id) WHERE state = 1;
CREATE INDEX callback_parked_account ON callback (account_id, id) WHERE state = 1;
ALTER TABLE callback ATTACH PARTITION callback_before FOR VALUES FROM (MINVALUE) TO (4294967296);
ALTER SEQUENCE callback_number OWNED BY callback.id;
ALTER TABLE callback ALTER COLUMN id SET DEFAULT nextval('callback_number');

-- The queue of reports says which partition each is in.
ALTER TABLE callback_queue ADD COLUMN message_id BIGINT;
UPDATE callback_queue AS q SET message_id = c.message_id FROM callback AS c WHERE c.id = q.id;
DELETE FROM callback_queue WHERE message_id IS NULL;
ALTER TABLE callback_queue ALTER COLUMN message_id SET NOT NULL;
