-- kind: 0 made by its owner, 1 given to a client for calls, 2 given to a client for new tokens: that one opens nothing.
-- grant_id: what gave the last two. A refresh token that was used is revoked, and known until it would have expired.
ALTER TABLE token ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
ALTER TABLE token ADD COLUMN grant_id INTEGER;
CREATE INDEX token_grant ON token (grant_id) WHERE kind > 0;
CREATE INDEX token_granted_expiry ON token (expires_us) WHERE kind > 0;

-- Clients that registered. redirects: addresses, separated by spaces.
CREATE TABLE oauth_client (
    id         TEXT    PRIMARY KEY,
    name       TEXT    NOT NULL,
    redirects  TEXT    NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX oauth_client_expiry ON oauth_client (expires_us);

-- What clients asked for and nobody answered yet. state is bytes: it is whatever the client likes.
CREATE TABLE oauth_request (
    hash        BLOB    PRIMARY KEY,
    client_id   TEXT    NOT NULL,
    client_name TEXT    NOT NULL,
    redirect    TEXT    NOT NULL,
    challenge   BLOB    NOT NULL,
    state       BLOB,
    scopes      TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    expires_us  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX oauth_request_expiry ON oauth_request (expires_us);

-- What people granted: a code, then the tokens that name it. Whoever changes more than one of those locks its row first.
CREATE TABLE oauth_grant (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      INTEGER NOT NULL REFERENCES account (id),
    client_id       TEXT    NOT NULL,
    client_name     TEXT    NOT NULL,
    redirect        TEXT    NOT NULL,
    challenge       BLOB    NOT NULL,
    scopes          TEXT    NOT NULL,
    resource        TEXT    NOT NULL,
    code_hash       BLOB    NOT NULL UNIQUE,
    code_expires_us INTEGER NOT NULL,
    code_used_us    INTEGER,
    created_us      INTEGER NOT NULL,
    revoked_us      INTEGER
);
