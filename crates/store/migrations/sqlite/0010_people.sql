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

-- A session tells where it was opened and when it was last used.
ALTER TABLE session ADD COLUMN opened_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN seen_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN address TEXT;
ALTER TABLE session ADD COLUMN browser TEXT NOT NULL DEFAULT '';
-- Until now each lasted twelve hours.
UPDATE session SET opened_us = expires_us - 43200000000, seen_us = expires_us - 43200000000;

-- totp_secret is asked for at sign-in; totp_offered was shown and is not confirmed yet. No step is used twice.
ALTER TABLE person ADD COLUMN seen_us INTEGER;
ALTER TABLE person ADD COLUMN totp_secret BLOB;
ALTER TABLE person ADD COLUMN totp_offered BLOB;
ALTER TABLE person ADD COLUMN totp_step INTEGER NOT NULL DEFAULT 0;
CREATE INDEX person_account ON person (account_id, id) WHERE account_id IS NOT NULL;

-- Each goes when it is used.
CREATE TABLE recovery_code (
    person_id INTEGER NOT NULL REFERENCES person (id),
    hash      BLOB NOT NULL,
    PRIMARY KEY (person_id, hash)
) WITHOUT ROWID;

-- A sign-in whose password was right and whose second factor is awaited.
CREATE TABLE half_open (
    hash       BLOB PRIMARY KEY,
    person_id  INTEGER NOT NULL REFERENCES person (id),
    tries      INTEGER NOT NULL DEFAULT 0,
    expires_us INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX half_open_person ON half_open (person_id);
