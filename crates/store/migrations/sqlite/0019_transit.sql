-- Receipts that came before the carrier's answer: one row for each, under the reference as the receipt has it. tail: the
-- last eight digits of the recipient's number, -1 where the receipt does not tell. taken_us: when it came.
CREATE TABLE early_receipt (
    carrier   TEXT    NOT NULL,
    reference BLOB    NOT NULL,
    tail      INTEGER NOT NULL,
    status    INTEGER NOT NULL,
    error     INTEGER NOT NULL,
    taken_us  INTEGER NOT NULL,
    report    TEXT,
    PRIMARY KEY (carrier, reference, tail)
) WITHOUT ROWID;
CREATE INDEX early_receipt_taken ON early_receipt (taken_us);
INSERT INTO early_receipt (carrier, reference, tail, status, error, taken_us, report)
SELECT carrier, reference, coalesce(tail, -1), status, error, taken_us, report FROM transit
WHERE id IS NULL AND alias_of IS NULL AND status IS NOT NULL AND error IS NOT NULL ORDER BY taken_us
ON CONFLICT DO NOTHING;

-- Parts are numbered as they are named: of several with the same reference the newest has the highest number.
DROP INDEX transit_message;
DROP INDEX transit_unmatched;
ALTER TABLE transit RENAME TO transit_before;
CREATE TABLE transit (
    number    INTEGER PRIMARY KEY,
    carrier   TEXT    NOT NULL,
    reference BLOB    NOT NULL,
    id        INTEGER NOT NULL,
    part      INTEGER,
    parts     INTEGER,
    taken_us  INTEGER NOT NULL,
    status    INTEGER,
    error     INTEGER,
    tail      INTEGER
);
INSERT INTO transit (number, carrier, reference, id, part, parts, taken_us, status, error, tail)
SELECT number, carrier, reference, id, part, parts, taken_us, status, error, tail FROM transit_before
WHERE id IS NOT NULL ORDER BY number;
DROP TABLE transit_before;
CREATE INDEX transit_reference ON transit (carrier, reference);
CREATE INDEX transit_message ON transit (id);
