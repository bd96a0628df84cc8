-- Texts that accounts saved to send them again.
CREATE TABLE text_template (
    account_id BIGINT  NOT NULL REFERENCES account (id),
    name       TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    PRIMARY KEY (account_id, name)
);
