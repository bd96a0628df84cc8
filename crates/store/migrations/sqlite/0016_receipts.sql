-- Tries that were handed to a carrier and got no answer: each carrier may have the message.
ALTER TABLE message ADD COLUMN unknown_tries INTEGER NOT NULL DEFAULT 0;

-- A carrier may use a reference again. former: 0 for the current use; earlier uses are numbered from 1, the newest has the
-- highest number. tail: the last eight digits of the recipient's number, as the message or the receipt has it; NULL where
-- that is not known. alias_of: for a receipt that came before the carrier's answer, which is stored under each form that
-- the answer may have (hexadecimal, decimal): the reference as the receipt has it.
DROP INDEX transit_message;
DROP INDEX transit_unmatched;
ALTER TABLE transit RENAME TO transit_before;
CREATE TABLE transit (
    number    INTEGER PRIMARY KEY,
    carrier   TEXT    NOT NULL,
    reference BLOB    NOT NULL,
    former    INTEGER NOT NULL DEFAULT 0,
    id        INTEGER,
    part      INTEGER,
    parts     INTEGER,
    taken_us  INTEGER NOT NULL,
    status    INTEGER,
    error     INTEGER,
    report    TEXT,
    tail      INTEGER,
    alias_of  BLOB,
    UNIQUE (carrier, reference, former)
);
INSERT INTO transit (number, carrier, reference, id, part, parts, taken_us, status, error, report)
SELECT number, carrier, reference, id, part, parts, taken_us, status, error, report FROM transit_before ORDER BY number;
DROP TABLE transit_before;
CREATE INDEX transit_message ON transit (id) WHERE id IS NOT NULL;
CREATE INDEX transit_unmatched ON transit (taken_us) WHERE id IS NULL;
