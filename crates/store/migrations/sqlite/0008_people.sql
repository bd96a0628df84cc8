-- role: operator, admin or member. password: a PHC string. Emails are kept in small letters.
CREATE TABLE person (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    email      TEXT    NOT NULL UNIQUE,
    password   TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    account_id INTEGER REFERENCES account (id),
    created_us INTEGER NOT NULL
);

-- One for each address. With person_id it gives that person a new password, without it creates one.
CREATE TABLE invitation (
    email      TEXT    PRIMARY KEY,
    hash       BLOB    NOT NULL UNIQUE,
    person_id  INTEGER REFERENCES person (id),
    role       TEXT    NOT NULL,
    account_id INTEGER REFERENCES account (id),
    expires_us INTEGER NOT NULL
) WITHOUT ROWID;

-- A session is a person's, whose account may change, or was opened by the link of the first start, for that account.
ALTER TABLE session RENAME TO session_before;
CREATE TABLE session (
    hash       BLOB    PRIMARY KEY,
    account_id INTEGER REFERENCES account (id),
    person_id  INTEGER REFERENCES person (id),
    expires_us INTEGER NOT NULL,
    CHECK ((account_id IS NULL) <> (person_id IS NULL))
) WITHOUT ROWID;
INSERT INTO session (hash, account_id, expires_us) SELECT hash, account_id, expires_us FROM session_before;
DROP TABLE session_before;
CREATE INDEX session_person ON session (person_id) WHERE person_id IS NOT NULL;
