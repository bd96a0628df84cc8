-- What an account may spend besides its balance, and what it spent on the last day (counted from 1970, UTC) on which
-- something was charged. countries: codes separated by spaces, none for every destination.
ALTER TABLE account ADD COLUMN credit_limit_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN daily_cap_micros INTEGER;
ALTER TABLE account ADD COLUMN per_recipient_hour INTEGER;
ALTER TABLE account ADD COLUMN countries TEXT NOT NULL DEFAULT '';
ALTER TABLE account ADD COLUMN spent_day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN spent_micros INTEGER NOT NULL DEFAULT 0;

-- What the message was charged, all parts together, and the network of its recipient in one number:
-- MCC, how many digits the MNC has, MNC in three digits (247-01 is 2472001).
ALTER TABLE message ADD COLUMN price_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN network INTEGER;

-- Every change of a balance. kind: 1 credit, 2 charge, 3 refund. balance_micros is what the balance was after it, so that
-- both the sum of the amounts and the last entry give the account's balance. One entry covers all messages of an
-- account that one transaction stored or ended. id counts an account's entries from 1: one tree holds them, so that a
-- charge writes one page here.
CREATE TABLE ledger (
    account_id     INTEGER NOT NULL,
    id             INTEGER NOT NULL,
    at_us          INTEGER NOT NULL,
    kind           INTEGER NOT NULL,
    amount_micros  INTEGER NOT NULL,
    balance_micros INTEGER NOT NULL,
    messages       INTEGER NOT NULL,
    note           TEXT,
    PRIMARY KEY (account_id, id)
) WITHOUT ROWID;
INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages)
SELECT id, 1, created_us, 1, balance_micros, balance_micros, 0 FROM account WHERE balance_micros <> 0;

-- To whom accounts that have a limit per recipient sent within the last hour.
CREATE TABLE recipient_sent (
    account_id INTEGER NOT NULL,
    recipient  INTEGER NOT NULL,
    at_us      INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    PRIMARY KEY (account_id, recipient, at_us, message_id)
) WITHOUT ROWID;
CREATE INDEX recipient_sent_at ON recipient_sent (at_us);

-- What is imported as a whole, every version of it. kind: 1 reference data, 2 prices of SMS, 3 of
-- Viber, 4 of HLR lookups; account_id: 0 for everybody's.
CREATE TABLE catalogue (
    kind       INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    at_us      INTEGER NOT NULL,
    row_count  INTEGER NOT NULL,
    content    TEXT NOT NULL,
    PRIMARY KEY (kind, account_id, version)
);
