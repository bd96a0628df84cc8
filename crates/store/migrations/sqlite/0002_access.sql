CREATE TABLE account (
    id              INTEGER PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    balance_micros  INTEGER NOT NULL,
    suspended       INTEGER NOT NULL,
    callback_secret TEXT    NOT NULL,
    created_us      INTEGER NOT NULL
);

-- Only the SHA-256 of a token is kept; permissions and networks are names separated by spaces.
CREATE TABLE token (
    id          INTEGER PRIMARY KEY,
    account_id  INTEGER NOT NULL REFERENCES account (id),
    name        TEXT    NOT NULL,
    hash        BLOB    NOT NULL UNIQUE,
    permissions TEXT    NOT NULL,
    allow_ips   TEXT    NOT NULL,
    expires_us  INTEGER,
    created_us  INTEGER NOT NULL,
    revoked_us  INTEGER
);

-- One row, raised by every change of an account or a token, in the same transaction.
CREATE TABLE access_version (
    version INTEGER NOT NULL
);
INSERT INTO access_version (version) VALUES (1);

CREATE TABLE sign_in_link (
    hash       BLOB    PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES account (id),
    expires_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE session (
    hash       BLOB    PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES account (id),
    expires_us INTEGER NOT NULL
) WITHOUT ROWID;
