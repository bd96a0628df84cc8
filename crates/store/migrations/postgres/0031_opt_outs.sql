-- Recipients that an account must not write to. sender: '' for all senders. via: 0 keyword, 1 API, 2 dashboard, 3
-- import. change: the number of the last change of this entry; nodes read the entries after the last number that they
-- know. removed_us: when it was taken off the list; the row stays for a while, so that all nodes notice.
CREATE TABLE opt_out (
    account_id BIGINT NOT NULL REFERENCES account (id),
    recipient  BIGINT NOT NULL,
    sender     TEXT COLLATE "C" NOT NULL,
    since_us   BIGINT NOT NULL,
    via        SMALLINT NOT NULL,
    change     BIGINT NOT NULL,
    removed_us BIGINT,
    PRIMARY KEY (account_id, recipient, sender)
);
CREATE INDEX opt_out_change ON opt_out (change, account_id, recipient, sender, removed_us);
CREATE INDEX opt_out_recipient ON opt_out (recipient);
CREATE INDEX opt_out_removed ON opt_out (removed_us) WHERE removed_us IS NOT NULL;

-- What operators block. kind: 0 number, 1 prefix of numbers, 2 sender, 3 word of the text. value: as it is compared.
CREATE TABLE block_rule (
    kind     SMALLINT NOT NULL,
    value    TEXT COLLATE "C" NOT NULL,
    since_us BIGINT NOT NULL,
    PRIMARY KEY (kind, value)
);

-- One row: the number of the last change of each list. Whoever changes a list changes this first, so numbers become
-- visible in their order.
CREATE TABLE list_change (
    opt_outs BIGINT NOT NULL,
    blocks   BIGINT NOT NULL
);
INSERT INTO list_change (opt_outs, blocks) VALUES (0, 0);

-- A message of the service itself, such as a PIN: opt-outs do not stop it. NULL for most messages.
ALTER TABLE message ADD COLUMN notice SMALLINT;
