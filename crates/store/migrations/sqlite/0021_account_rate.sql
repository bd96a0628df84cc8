-- The most requests of an account in a second, on each node; 0: no limit.
ALTER TABLE account ADD COLUMN requests_per_second INTEGER NOT NULL DEFAULT 0;
