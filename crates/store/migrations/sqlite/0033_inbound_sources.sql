-- Messages from handsets that a carrier gave an ID. hash: of the carrier and its ID; the same message is stored once,
-- however late it comes again.
CREATE TABLE inbound_source (
    hash       BLOB    NOT NULL PRIMARY KEY,
    inbound_id INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX inbound_source_message ON inbound_source (inbound_id);
