-- The key of the service that encrypts: its ID, and a known value that it encrypts. The first node that starts with this
-- step adds the row, and encrypts account.callback_secret, person.totp_secret and person.totp_offered. The key itself is
-- kept here only where the configuration of nodes that share the database has none.
CREATE TABLE service_key (
    one    SMALLINT PRIMARY KEY CHECK (one = 1),
    key_id TEXT     NOT NULL,
    proof  BYTEA    NOT NULL,
    kept   TEXT
);

-- After a rotation: the secret before, encrypted, and until when it signs callbacks besides the new one.
ALTER TABLE account ADD COLUMN former_secret TEXT;
ALTER TABLE account ADD COLUMN former_secret_until_us BIGINT;
