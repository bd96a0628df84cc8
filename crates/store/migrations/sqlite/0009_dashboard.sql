-- How many messages came to their end, counted in the transaction of the end. span: 0 an hour, 1 a day; begins: hours or
-- days since 1970 (UTC). Only days have the network (as message.network, 0 when unknown). status and error are those of
-- the message, 0 when it was cancelled. cost_micros: what they cost after what was given back. shard: so that
-- transactions need not wait for each other; one is enough for one writer.
CREATE TABLE traffic (
    account_id  INTEGER NOT NULL,
    span        INTEGER NOT NULL,
    begins      INTEGER NOT NULL,
    channel     INTEGER NOT NULL,
    network     INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    error       INTEGER NOT NULL,
    shard       INTEGER NOT NULL,
    messages    INTEGER NOT NULL,
    parts       INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    PRIMARY KEY (account_id, span, begins, channel, network, status, error, shard)
) WITHOUT ROWID;
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
CROSS JOIN (SELECT 0 AS span, 3600000000 AS length_us UNION ALL SELECT 1, 86400000000) AS s
WHERE m.final_us IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6, 7;

-- Messages by account and number, newest first. An index by number alone would be written all over; this one is sorted
-- only within segments of 512 IDs, so that inserts touch the few pages of the newest. Whoever looks for a number asks
-- each segment, from the newest down.
CREATE INDEX message_found ON message (id >> 9, account_id, recipient);

-- The parts of a message, and the receipts that fit none.
CREATE INDEX transit_message ON transit (id) WHERE id IS NOT NULL;
CREATE INDEX transit_unmatched ON transit (taken_us) WHERE id IS NULL;

-- What is parked of one account, however much is parked of others.
CREATE INDEX callback_parked_account ON callback (account_id, id) WHERE state = 1;

-- When a token was last used, as far as nodes have noted it: within a minute or so.
ALTER TABLE token ADD COLUMN last_used_us INTEGER;
CREATE INDEX oauth_grant_account ON oauth_grant (account_id);
