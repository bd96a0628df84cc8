-- channel: 0 SMS, 1 Viber, 2 HLR lookup. interactive: what a Viber message has besides its text, as JSON. result: what a
-- lookup found, as it was reported. seen_us: when the recipient of a delivered message looked at it.
ALTER TABLE message ADD COLUMN channel INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN interactive BLOB;
ALTER TABLE message ADD COLUMN result TEXT;
ALTER TABLE message ADD COLUMN seen_us INTEGER;

-- The list of what is scheduled is one of SMS.
DROP INDEX message_scheduled;
CREATE INDEX message_scheduled ON message (account_id, scheduled_us, id) WHERE state = 1 AND channel = 0;

-- kind: 0 report on a message, 1 result of a lookup, 2 news of a sender, whose ID message_id is then.
ALTER TABLE callback ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;

-- Whether an account may send only under senders that are approved.
ALTER TABLE account ADD COLUMN approved_senders_only INTEGER NOT NULL DEFAULT 0;

-- Names and numbers that accounts send under. kind: 1 name, 2 number. state: 1 pending, 2 awaiting confirmation,
-- 3 approved, 4 rejected, 5 revoked. name is as it is compared: a number as its digits. pin_hash is salted with pin_salt;
-- both are NULL when no PIN is out. An account has at most one live sender of a name.
CREATE TABLE sender (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id       INTEGER NOT NULL,
    name             TEXT NOT NULL,
    kind             INTEGER NOT NULL,
    category         INTEGER,
    description      TEXT,
    notification_url BLOB,
    state            INTEGER NOT NULL,
    reason           TEXT,
    created_us       INTEGER NOT NULL,
    changed_us       INTEGER NOT NULL,
    pin_hash         BLOB,
    pin_salt         BLOB,
    pin_expires_us   INTEGER,
    pin_sent_us      INTEGER,
    pin_tries        INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sender_live ON sender (account_id, name) WHERE state IN (1, 2, 3);
CREATE INDEX sender_account ON sender (account_id, id);
