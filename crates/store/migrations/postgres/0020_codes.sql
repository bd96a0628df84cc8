-- The texts of messages that carry a confirmation code, encrypted, until the message has ended. The message's own body says
-- only that it is one.
CREATE TABLE code_text (
    message_id BIGINT PRIMARY KEY,
    text       BYTEA NOT NULL
);

-- Each code of the last day: how many a number got, and how many an account had sent.
CREATE TABLE code_sent (
    number     BIGINT NOT NULL,
    account_id BIGINT NOT NULL,
    sent_us    BIGINT NOT NULL,
    PRIMARY KEY (number, sent_us, account_id)
);
CREATE INDEX code_sent_account ON code_sent (account_id, sent_us);

-- The most codes that an account may have sent in a day.
ALTER TABLE account ADD COLUMN codes_per_day BIGINT NOT NULL DEFAULT 500;
