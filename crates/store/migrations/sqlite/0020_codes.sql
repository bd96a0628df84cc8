-- The texts of messages that carry a confirmation code, encrypted, until the message has ended. The message's own body says
-- only that it is one.
CREATE TABLE code_text (
    message_id INTEGER PRIMARY KEY,
    text       BLOB NOT NULL
);

-- Each code of the last day: how many a number got, and how many an account had sent.
CREATE TABLE code_sent (
    number     INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    sent_us    INTEGER NOT NULL,
    PRIMARY KEY (number, sent_us, account_id)
) WITHOUT ROWID;
CREATE INDEX code_sent_account ON code_sent (account_id, sent_us);

-- The most codes that an account may have sent in a day.
ALTER TABLE account ADD COLUMN codes_per_day INTEGER NOT NULL DEFAULT 500;
