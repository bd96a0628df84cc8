-- The newest entry of an account is its balance, and what it spent on the last day (counted from 1970, UTC) on which
-- something was charged.
ALTER TABLE ledger ADD COLUMN spent_day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN spent_micros INTEGER NOT NULL DEFAULT 0;
UPDATE ledger SET spent_day = a.spent_day, spent_micros = a.spent_micros FROM account AS a
WHERE ledger.account_id = a.id AND ledger.id = (SELECT max(l.id) FROM ledger AS l WHERE l.account_id = a.id);
ALTER TABLE account DROP COLUMN balance_micros;
ALTER TABLE account DROP COLUMN spent_day;
ALTER TABLE account DROP COLUMN spent_micros;
