-- Tries at passwords and codes. key: the fingerprint of what they count against.
CREATE TABLE sign_in_try (
    key      BLOB PRIMARY KEY,
    count    INTEGER NOT NULL,
    since_us INTEGER NOT NULL
);
CREATE INDEX sign_in_try_since ON sign_in_try (since_us);

-- Browsers that people have signed in with. hash: the fingerprint of a cookie.
CREATE TABLE known_browser (
    hash       BLOB NOT NULL,
    person_id  INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,
    PRIMARY KEY (hash, person_id)
);
CREATE INDEX known_browser_expiry ON known_browser (expires_us);
