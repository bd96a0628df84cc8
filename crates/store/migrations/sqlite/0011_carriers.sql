-- places: how many parts may be under way to it at once. per_second: parts that were handed to it in a second, lately.
ALTER TABLE carrier ADD COLUMN places INTEGER NOT NULL DEFAULT 0;
ALTER TABLE carrier ADD COLUMN per_second INTEGER NOT NULL DEFAULT 0;
