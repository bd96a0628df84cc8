-- A part's row is changed once, by its receipt. Pages that are filled by half have space for that, so the change adds no
-- index entries. Partitions of days are created in the same way.
ALTER TABLE IF EXISTS transit_before SET (fillfactor = 50);
ALTER TABLE IF EXISTS transit_default SET (fillfactor = 50);
