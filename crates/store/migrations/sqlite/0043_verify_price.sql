-- What an approved verification costs: of the account, and of a verification as it was when its code was sent.
ALTER TABLE account ADD COLUMN verify_price_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE verification ADD COLUMN price_micros INTEGER NOT NULL DEFAULT 0;
-- The network or the country of the number, as in traffic.network.
ALTER TABLE verification ADD COLUMN network INTEGER NOT NULL DEFAULT 0;
-- SHA-256 of the Idempotency-Key of the request.
ALTER TABLE verification ADD COLUMN request_key BLOB;
CREATE INDEX verification_key ON verification (account_id, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX verification_account ON verification (account_id, id);
CREATE INDEX verification_recent ON verification (account_id, created_us);
