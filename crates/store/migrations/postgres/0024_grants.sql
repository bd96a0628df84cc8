-- On a used refresh token: the refresh token that followed it, and the salt from which that pair was derived, together with
-- the used token itself, of which only the hash is here. The salt is deleted a minute after the use.
ALTER TABLE token ADD COLUMN successor_id BIGINT;
ALTER TABLE token ADD COLUMN successor_salt BYTEA;
CREATE INDEX token_salted ON token (revoked_us) WHERE successor_salt IS NOT NULL;

-- For deleting revoked access tokens, and all tokens of revoked grants.
CREATE INDEX token_revoked ON token (revoked_us) WHERE kind = 1 AND revoked_us IS NOT NULL;
CREATE INDEX oauth_grant_revoked ON oauth_grant (revoked_us) WHERE revoked_us IS NOT NULL;

-- Who granted it; NULL for those of before this step, and for whoever came by the link of the first start. Whoever removes
-- a person ends their grants, whose rows stay for a day; so this is no reference.
ALTER TABLE oauth_grant ADD COLUMN person_id BIGINT;
CREATE INDEX oauth_grant_person ON oauth_grant (person_id) WHERE person_id IS NOT NULL AND revoked_us IS NULL;

-- Whether only admins may let clients act for the account.
ALTER TABLE account ADD COLUMN admins_consent_only BOOLEAN NOT NULL DEFAULT FALSE;
