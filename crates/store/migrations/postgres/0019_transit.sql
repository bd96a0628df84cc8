-- Receipts that came before the carrier's answer: one row for each, under the reference as the receipt has it. tail: the
-- last eight digits of the recipient's number, -1 where the receipt does not tell. taken_us: when it came.
CREATE TABLE early_receipt (
    carrier   TEXT     NOT NULL,
    reference BYTEA    NOT NULL,
    tail      INTEGER  NOT NULL,
    status    SMALLINT NOT NULL,
    error     SMALLINT NOT NULL,
    taken_us  BIGINT   NOT NULL,
    report    TEXT,
    PRIMARY KEY (carrier, reference, tail)
);
CREATE INDEX early_receipt_taken ON early_receipt (taken_us);
INSERT INTO early_receipt (carrier, reference, tail, status, error, taken_us, report)
SELECT carrier, reference, coalesce(tail, -1), status, error, taken_us, report FROM transit
WHERE id IS NULL AND alias_of IS NULL AND status IS NOT NULL AND error IS NOT NULL ORDER BY taken_us
ON CONFLICT DO NOTHING;
DELETE FROM transit WHERE id IS NULL;

-- Parts by the day on which the carrier took them (UTC), so that a day is forgotten by dropping a table. The table so far
-- becomes the partition "before", which ends with the day of this step; it is not written anew, but gets two indexes. What
-- belongs to a day that has no partition is stored in the default partition. Rows of these two are deleted one by one.
ALTER TABLE transit RENAME TO transit_before;
ALTER TABLE transit_before DROP CONSTRAINT transit_pkey;
DROP INDEX transit_message;
DROP INDEX transit_unmatched;
ALTER INDEX transit_taken RENAME TO transit_before_taken;
ALTER TABLE transit_before DROP COLUMN former, DROP COLUMN alias_of, DROP COLUMN report;
ALTER TABLE transit_before ALTER COLUMN id SET NOT NULL;
CREATE TABLE transit (LIKE transit_before) PARTITION BY RANGE (taken_us);
CREATE INDEX transit_reference ON transit (carrier, reference, taken_us, id);
CREATE INDEX transit_message ON transit (id);
CREATE INDEX transit_before_reference ON transit_before (carrier, reference, taken_us, id);
CREATE INDEX transit_before_message ON transit_before (id);
DO $$
DECLARE
    day   CONSTANT BIGINT := 86400000000;
    first CONSTANT BIGINT := (CAST(extract(epoch FROM now()) * 1000000 AS BIGINT) / day + 1) * day;
BEGIN
    -- A node whose clock was ahead.
    UPDATE transit_before SET taken_us = first - 1 WHERE taken_us >= first;
    EXECUTE format('ALTER TABLE transit ATTACH PARTITION transit_before FOR VALUES FROM (MINVALUE) TO (%s)', first);
END $$;
CREATE TABLE transit_default PARTITION OF transit DEFAULT;
CREATE INDEX transit_default_taken ON transit_default (taken_us);
