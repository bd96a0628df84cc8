-- How many messages came to their end, counted in the transaction of the end. span: 0 an hour, 1 a day; begins: hours or
-- days since 1970 (UTC). Only days have the network (as message.network, 0 when unknown). status and error are those of
-- the message, 0 when it was cancelled. cost_micros: what they cost after what was given back. shard: so that
-- transactions need not wait for each other.
CREATE TABLE traffic (
    account_id  BIGINT   NOT NULL,
    span        SMALLINT NOT NULL,
    begins      INTEGER  NOT NULL,
    channel     SMALLINT NOT NULL,
    network     INTEGER  NOT NULL,
    status      SMALLINT NOT NULL,
    error       SMALLINT NOT NULL,
    shard       SMALLINT NOT NULL,
    messages    BIGINT   NOT NULL,
    parts       BIGINT   NOT NULL,
    cost_micros BIGINT   NOT NULL,
    PRIMARY KEY (account_id, span, begins, channel, network, status, error, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
-- What no carrier took was given back whatever its error, which is not known any more: it counts by its error alone.
INSERT INTO traffic (account_id, span, begins, channel, network, status, error, shard, messages, parts, cost_micros)
SELECT m.account_id, s.span, m.final_us / s.length_us, m.channel,
    CASE s.span WHEN 1 THEN coalesce(m.network, 0) ELSE 0 END, coalesce(m.status, 0), coalesce(m.error, 0), 0,
    count(*), sum(m.parts),
    sum(CASE
        WHEN m.status IS NULL THEN 0
        WHEN m.status = 2 AND (m.error IN (2, 53, 60, 61, 74, 90, 91) OR m.error BETWEEN 20 AND 31) THEN 0
        WHEN m.status = 2 AND m.channel = 2 AND m.error BETWEEN 50 AND 52 THEN 0
        ELSE m.price_micros
    END)
FROM message AS m
CROSS JOIN (VALUES (0, 3600000000), (1, 86400000000)) AS s (span, length_us)
WHERE m.final_us IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6, 7;

-- Messages by account and number, newest first. An index by number alone would be written all over; this one is sorted
-- only within segments of 2048 IDs, so that inserts touch the few pages of the newest. Whoever looks for a number asks
-- each segment, from the newest down.
CREATE INDEX message_found ON message ((id >> 11), account_id, recipient, id);

-- The parts of a message, and the receipts that fit none.
CREATE INDEX transit_message ON transit (id) WHERE id IS NOT NULL;
CREATE INDEX transit_unmatched ON transit (taken_us) WHERE id IS NULL;

-- What is parked of one account, however much is parked of others.
CREATE INDEX callback_parked_account ON callback (account_id, id) WHERE state = 1;

-- When a token was last used, as far as nodes have noted it: within a minute or so.
ALTER TABLE token ADD COLUMN last_used_us BIGINT;
CREATE INDEX oauth_grant_account ON oauth_grant (account_id);
