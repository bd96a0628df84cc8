-- What a client may spend for its account on one UTC day; NULL: no cap of its own. Its tokens have the same, so that it is
-- read with them.
ALTER TABLE oauth_grant ADD COLUMN daily_cap_micros INTEGER;
ALTER TABLE token ADD COLUMN daily_cap_micros INTEGER;
-- What the client has spent on the day spent_day, for grants with a cap.
ALTER TABLE oauth_grant ADD COLUMN spent_day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE oauth_grant ADD COLUMN spent_micros INTEGER NOT NULL DEFAULT 0;
