-- What the account paid for a message from a handset.
ALTER TABLE inbound ADD COLUMN price_micros INTEGER NOT NULL DEFAULT 0;
