-- places: how many parts may be under way to it at once. per_second: parts that were handed to it in a second, lately.
ALTER TABLE carrier ADD COLUMN places BIGINT NOT NULL DEFAULT 0;
ALTER TABLE carrier ADD COLUMN per_second BIGINT NOT NULL DEFAULT 0;
