-- Tries that were handed to a carrier and got no answer: each carrier may have the message.
ALTER TABLE message ADD COLUMN unknown_tries SMALLINT NOT NULL DEFAULT 0;

-- A carrier may use a reference again. former: 0 for the current use; earlier uses are numbered from 1, the newest has the
-- highest number. tail: the last eight digits of the recipient's number, as the message or the receipt has it; NULL where
-- that is not known. alias_of: for a receipt that came before the carrier's answer, which is stored under each form that
-- the answer may have (hexadecimal, decimal): the reference as the receipt has it.
ALTER TABLE transit ADD COLUMN former INTEGER NOT NULL DEFAULT 0;
ALTER TABLE transit ADD COLUMN tail INTEGER;
ALTER TABLE transit ADD COLUMN alias_of BYTEA;
ALTER TABLE transit DROP CONSTRAINT transit_pkey;
ALTER TABLE transit ADD PRIMARY KEY (carrier, reference, former);
