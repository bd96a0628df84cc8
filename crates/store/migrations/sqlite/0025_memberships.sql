-- Further accounts of a person, besides the one in their own row. role: admin or member.
CREATE TABLE membership (
    person_id  INTEGER NOT NULL REFERENCES person (id),
    account_id INTEGER NOT NULL REFERENCES account (id),
    role       TEXT    NOT NULL,
    created_us INTEGER NOT NULL,
    seen_us    INTEGER,
    PRIMARY KEY (person_id, account_id)
) WITHOUT ROWID;
CREATE INDEX membership_account ON membership (account_id, person_id);

-- Which of their further accounts a person works with; NULL: the one in their own row.
ALTER TABLE session ADD COLUMN chosen_account_id INTEGER;

-- One invitation for each address and account, and one link for a new password, instead of one for each address.
ALTER TABLE invitation RENAME TO invitation_before;
CREATE TABLE invitation (
    hash       BLOB    PRIMARY KEY,
    email      TEXT    NOT NULL,
    person_id  INTEGER REFERENCES person (id),
    role       TEXT    NOT NULL,
    account_id INTEGER REFERENCES account (id),
    expires_us INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO invitation (hash, email, person_id, role, account_id, expires_us)
SELECT hash, email, person_id, role, account_id, expires_us FROM invitation_before;
DROP TABLE invitation_before;
CREATE UNIQUE INDEX invitation_for ON invitation (email, coalesce(account_id, 0), (person_id IS NOT NULL));
