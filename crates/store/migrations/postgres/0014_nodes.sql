-- What a node says of itself; NULL where its program is older than this step. works: it may hold messages and reports.
-- schema_level: the last step of the schema that its program knows.
ALTER TABLE node ADD COLUMN started_us BIGINT;
ALTER TABLE node ADD COLUMN schema_level BIGINT;
ALTER TABLE node ADD COLUMN works BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE node ADD COLUMN roles TEXT;
ALTER TABLE node ADD COLUMN version TEXT;
ALTER TABLE node ADD COLUMN host TEXT;
ALTER TABLE node ADD COLUMN listen TEXT;

-- For each step of the schema from this one on: the oldest program (by the last step that it knows) that may work with
-- the schema once it is applied. A step without a row: none but those that know it. A table of its own, because those
-- who wait to migrate hold locks on schema_migration.
CREATE TABLE schema_fit (
    number BIGINT PRIMARY KEY,
    oldest BIGINT NOT NULL
);
