-- Numbers that handsets send to. keyword: in its compared form, '' takes what no keyword takes; word: as it was
-- configured. A number is compared by its digits.
CREATE TABLE inbound_number (
    digits     TEXT    NOT NULL,
    keyword    TEXT    NOT NULL,
    number     TEXT    NOT NULL,
    word       TEXT,
    account_id BIGINT NOT NULL,
    url        BYTEA,
    PRIMARY KEY (digits, keyword)
);

-- Messages from handsets. IDs are from the same numbers as those of messages. account_id: NULL if nobody owns the number.
-- coding: 0 GSM-7, 1 binary, 2 UCS-2.
CREATE TABLE inbound (
    id           BIGINT PRIMARY KEY,
    account_id   BIGINT,
    carrier      TEXT    NOT NULL,
    sender       TEXT    NOT NULL,
    number       TEXT    NOT NULL,
    body         BYTEA    NOT NULL,
    coding       SMALLINT NOT NULL,
    udh          BYTEA,
    network      INTEGER,
    parts        SMALLINT NOT NULL,
    keyword      TEXT,
    in_reply_to  BIGINT,
    incomplete   BOOLEAN NOT NULL,
    received_us  BIGINT NOT NULL
);
CREATE INDEX inbound_account ON inbound (account_id, id);
CREATE INDEX inbound_sender ON inbound (account_id, sender, id);

-- Parts of long texts until the text is whole. set_number: references are used again, so a part that is there already
-- begins another set. alphabet: 0 GSM-7, 1 binary, 2 UCS-2, 3 Latin-1.
CREATE TABLE inbound_part (
    carrier     TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    number      TEXT    NOT NULL,
    reference   INTEGER NOT NULL,
    total       SMALLINT NOT NULL,
    set_number  INTEGER NOT NULL,
    sequence    SMALLINT NOT NULL,
    alphabet    SMALLINT NOT NULL,
    octets      BYTEA    NOT NULL,
    udh         BYTEA,
    received_us BIGINT NOT NULL,
    PRIMARY KEY (carrier, sender, number, reference, total, set_number, sequence)
);

-- What carriers delivered whose answer they may not have got. ended: whether the session is over, so that the same
-- content on another session is a repetition.
CREATE TABLE inbound_copy (
    session BIGINT NOT NULL,
    number  BIGINT NOT NULL,
    hash    BYTEA    NOT NULL,
    node_id BIGINT NOT NULL,
    ended   BOOLEAN NOT NULL,
    at_us   BIGINT NOT NULL,
    PRIMARY KEY (session, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX inbound_copy_hash ON inbound_copy (hash);
CREATE INDEX inbound_copy_age ON inbound_copy (at_us);

-- Where messages to an account's numbers are sent; NULL: only into the inbox.
ALTER TABLE account ADD COLUMN inbound_url BYTEA;
