-- Further accounts of a person, besides the one in their own row. role: admin or member.
CREATE TABLE membership (
    person_id  BIGINT NOT NULL REFERENCES person (id),
    account_id BIGINT NOT NULL REFERENCES account (id),
    role       TEXT   NOT NULL,
    created_us BIGINT NOT NULL,
    seen_us    BIGINT,
    PRIMARY KEY (person_id, account_id)
);
CREATE INDEX membership_account ON membership (account_id, person_id);

-- Which of their further accounts a person works with; NULL: the one in their own row.
ALTER TABLE session ADD COLUMN chosen_account_id BIGINT;

-- One invitation for each address and account, and one link for a new password, instead of one for each address.
ALTER TABLE invitation DROP CONSTRAINT invitation_pkey;
ALTER TABLE invitation DROP CONSTRAINT invitation_hash_key;
ALTER TABLE invitation ADD PRIMARY KEY (hash);
CREATE UNIQUE INDEX invitation_for ON invitation (email, coalesce(account_id, 0), (person_id IS NOT NULL));
