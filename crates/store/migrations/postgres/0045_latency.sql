-- How long delivered SMS and Viber messages took, from their acceptance, or the time they were scheduled for, until the
-- delivery report. day: days since 1970 (UTC) on which they were delivered; bucket: the range of the time taken.
CREATE TABLE latency_day (
    account_id BIGINT   NOT NULL,
    day        INTEGER  NOT NULL,
    bucket     SMALLINT NOT NULL,
    messages   BIGINT   NOT NULL,
    PRIMARY KEY (account_id, day, bucket)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
-- The bucket of latency_day, NULL for what has no latency.
ALTER TABLE traffic_fresh ADD COLUMN bucket SMALLINT;
