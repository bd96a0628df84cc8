-- Messages from handsets that a carrier gave an ID. hash: of the carrier and its ID; the same message is stored once,
-- however late it comes again.
CREATE TABLE inbound_source (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    inbound_id BIGINT NOT NULL
);
CREATE INDEX inbound_source_message ON inbound_source (inbound_id);
