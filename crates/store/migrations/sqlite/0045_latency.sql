-- How long delivered SMS and Viber messages took, from their acceptance, or the time they were scheduled for, until the
-- delivery report. day: days since 1970 (UTC) on which they were delivered; bucket: the range of the time taken.
CREATE TABLE latency_day (
    account_id INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    bucket     INTEGER NOT NULL,
    messages   INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, bucket)
) WITHOUT ROWID;
