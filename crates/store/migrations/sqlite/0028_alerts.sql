-- Below this balance the account and the operators are notified; NULL: never.
ALTER TABLE account ADD COLUMN low_balance_micros INTEGER;

-- What is wrong at present, and what was told about it. topic and subject: what it is about. account_id: whose it is, 0
-- for the whole service. level: 0 fine, 1 bad, 2 worse; since_us: since when. told: the level that the last notification
-- was about; told_0_us to told_2_us: when each level was last told, so that a flapping carrier does not notify all the
-- time. data: what notifications and pages show, as JSON.
CREATE TABLE alert (
    topic      TEXT     NOT NULL,
    subject    TEXT     NOT NULL,
    account_id INTEGER   NOT NULL,
    level      INTEGER NOT NULL,
    since_us   INTEGER   NOT NULL,
    told       INTEGER NOT NULL,
    told_0_us  INTEGER,
    told_1_us  INTEGER,
    told_2_us  INTEGER,
    data       TEXT     NOT NULL,
    PRIMARY KEY (topic, subject)
) WITHOUT ROWID;

-- Notifications that were not received yet. target: an entry of the configuration, by the hash of its address, or a
-- setting of the account. due_us: the next attempt; while one is under way, when another node may make it.
CREATE TABLE notification (
    id         INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL,
    target     TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    created_us INTEGER NOT NULL,
    due_us     INTEGER NOT NULL,
    tries      INTEGER NOT NULL
);
CREATE INDEX notification_due ON notification (due_us);

-- Where an account wants to be notified about its balance and its callback hosts.
CREATE TABLE notify_setting (
    account_id INTEGER PRIMARY KEY,
    url        TEXT,
    email      TEXT
);
