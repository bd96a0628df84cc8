-- Messages that have no room in memory wait in pools, without a further write until a carrier of their route has room. A
-- pool belongs to a carrier (pool.carrier is its name), or to a route (pool.carrier is '=' and the names of its carriers
-- joined by commas).
--
-- tries counts submits that ended with "not now"; attempt is only the fence of a claim. Rows in pools (owner < -1) say whose
-- they are, so that accounts share a carrier, and until when they are worth sending. 0 as account_id: put there by an older
-- program. A row that could not be read has the owner -9223372036854775807 and is not claimed again.
ALTER TABLE queue ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN account_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN expires_us INTEGER;
UPDATE queue SET
    account_id = coalesce((SELECT m.account_id FROM message AS m WHERE m.id = queue.id), 0),
    expires_us = (SELECT m.expires_us FROM message AS m WHERE m.id = queue.id)
WHERE owner < -1;

CREATE INDEX queue_pool ON queue (owner, lane, account_id, due_us, id) WHERE owner < -1;
CREATE INDEX queue_pool_expiry ON queue (expires_us) WHERE owner < -1;
