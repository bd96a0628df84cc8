-- Who changed what, and from where. account_id refers to nothing: what was noted outlives what it is about.
CREATE TABLE audit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us      INTEGER NOT NULL,
    who        TEXT    NOT NULL,
    address    TEXT,
    account_id INTEGER,
    action     TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    detail     TEXT    NOT NULL
);
CREATE INDEX audit_account ON audit (account_id, id) WHERE account_id IS NOT NULL;

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'what was noted is never changed'); END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'what was noted is never forgotten'); END;
-- INSERT OR REPLACE deletes without a trigger.
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'what was noted is never replaced'); END;
