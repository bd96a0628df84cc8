-- Texts that accounts saved to send them again.
CREATE TABLE text_template (
    account_id INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    PRIMARY KEY (account_id, name)
);
