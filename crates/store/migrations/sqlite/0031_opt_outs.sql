-- Recipients that an account must not write to. sender: '' for all senders. via: 0 keyword, 1 API, 2 dashboard, 3
-- import. change: the number of the last change of this entry; nodes read the entries after the last number that they
-- know. removed_us: when it was taken off the list; the row stays for a while, so that all nodes notice.
CREATE TABLE opt_out (
    account_id INTEGER NOT NULL,
    recipient  INTEGER NOT NULL,
    sender     TEXT NOT NULL,
    since_us   INTEGER NOT NULL,
    via        INTEGER NOT NULL,
    change     INTEGER NOT NULL,
    removed_us INTEGER,
    PRIMARY KEY (account_id, recipient, sender)
) WITHOUT ROWID;
CREATE INDEX opt_out_change ON opt_out (change, account_id, recipient, sender, removed_us);
CREATE INDEX opt_out_recipient ON opt_out (recipient);
CREATE INDEX opt_out_removed ON opt_out (removed_us) WHERE removed_us IS NOT NULL;

-- What operators block. kind: 0 number, 1 prefix of numbers, 2 sender, 3 word of the text. value: as it is compared.
CREATE TABLE block_rule (
    kind     INTEGER NOT NULL,
    value    TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    PRIMARY KEY (kind, value)
) WITHOUT ROWID;

-- One row: the number of the last change of each list. Whoever changes a list changes this first, so numbers become
-- visible in their order.
CREATE TABLE list_change (
    opt_outs INTEGER NOT NULL,
    blocks   INTEGER NOT NULL
);
INSERT INTO list_change (opt_outs, blocks) VALUES (0, 0);

-- A message of the service itself, such as a PIN: opt-outs do not stop it. NULL for most messages.
ALTER TABLE message ADD COLUMN notice INTEGER;
