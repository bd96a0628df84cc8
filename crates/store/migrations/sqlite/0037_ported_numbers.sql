-- Numbers that a lookup or a receipt found in another network than the one that their digits tell. change: the number of
-- the last change of this entry; nodes read the entries after the last number that they know.
CREATE TABLE ported_number (
    number     INTEGER PRIMARY KEY,
    network    INTEGER NOT NULL,
    learned_us INTEGER NOT NULL,
    change     INTEGER NOT NULL
);
CREATE INDEX ported_number_change ON ported_number (change, number);
CREATE INDEX ported_number_learned ON ported_number (learned_us);

-- ported: the number of the last change. ported_removed: how often numbers were removed before they were old, which nodes
-- notice by reading all of them again.
ALTER TABLE list_change ADD COLUMN ported INTEGER NOT NULL DEFAULT 0;
ALTER TABLE list_change ADD COLUMN ported_removed INTEGER NOT NULL DEFAULT 0;

-- Whether prices and routes of the account go by the networks of ported numbers.
ALTER TABLE account ADD COLUMN ported_numbers INTEGER NOT NULL DEFAULT 0;

-- The network that the receipt named.
ALTER TABLE early_receipt ADD COLUMN network INTEGER;
