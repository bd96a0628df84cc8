-- Numbers that handsets send to. keyword: in its compared form, '' takes what no keyword takes; word: as it was
-- configured. A number is compared by its digits.
CREATE TABLE inbound_number (
    digits     TEXT    NOT NULL,
    keyword    TEXT    NOT NULL,
    number     TEXT    NOT NULL,
    word       TEXT,
    account_id INTEGER NOT NULL,
    url        BLOB,
    PRIMARY KEY (digits, keyword)
) WITHOUT ROWID;

-- Messages from handsets. IDs are from the same numbers as those of messages. account_id: NULL if nobody owns the number.
-- coding: 0 GSM-7, 1 binary, 2 UCS-2.
CREATE TABLE inbound (
    id           INTEGER PRIMARY KEY,
    account_id   INTEGER,
    carrier      TEXT    NOT NULL,
    sender       TEXT    NOT NULL,
    number       TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    coding       INTEGER NOT NULL,
    udh          BLOB,
    network      INTEGER,
    parts        INTEGER NOT NULL,
    keyword      TEXT,
    in_reply_to  INTEGER,
    incomplete   INTEGER NOT NULL,
    received_us  INTEGER NOT NULL
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
    total       INTEGER NOT NULL,
    set_number  INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    alphabet    INTEGER NOT NULL,
    octets      BLOB    NOT NULL,
    udh         BLOB,
    received_us INTEGER NOT NULL,
    PRIMARY KEY (carrier, sender, number, reference, total, set_number, sequence)
) WITHOUT ROWID;

-- What carriers delivered whose answer they may not have got. ended: whether the session is over, so that the same
-- content on another session is a repetition.
CREATE TABLE inbound_copy (
    session INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    hash    BLOB    NOT NULL,
    node_id INTEGER NOT NULL,
    ended   INTEGER NOT NULL,
    at_us   INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE INDEX inbound_copy_hash ON inbound_copy (hash);
CREATE INDEX inbound_copy_age ON inbound_copy (at_us);

-- Where messages to an account's numbers are sent; NULL: only into the inbox.
ALTER TABLE account ADD COLUMN inbound_url BLOB;
