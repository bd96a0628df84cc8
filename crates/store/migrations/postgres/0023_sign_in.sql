-- Tries at passwords and codes. key: the fingerprint of what they count against.
CREATE TABLE sign_in_try (
    key      BYTEA PRIMARY KEY,
    count    BIGINT NOT NULL,
    since_us BIGINT NOT NULL
);
CREATE INDEX sign_in_try_since ON sign_in_try (since_us);

-- Browsers that people have signed in with. hash: the fingerprint of a cookie.
CREATE TABLE known_browser (
    hash       BYTEA NOT NULL,
    person_id  BIGINT NOT NULL,
    expires_us BIGINT NOT NULL,
    PRIMARY KEY (hash, person_id)
);
CREATE INDEX known_browser_expiry ON known_browser (expires_us);
