//! Makes the schema one of an older version. A migration adds to it what undoes it.

use super::fixture::Database;

/// The schema before secrets were encrypted. Encrypted values stay encrypted.
pub(super) async fn undo_encryption(database: &Database) {
    const UNDO: &str = "
        ALTER TABLE message DROP COLUMN trace; ALTER TABLE callback DROP COLUMN trace;
        DROP INDEX token_salted; DROP INDEX token_revoked; DROP INDEX oauth_grant_revoked; DROP INDEX oauth_grant_person;
        ALTER TABLE token DROP COLUMN successor_id; ALTER TABLE token DROP COLUMN successor_salt;
        ALTER TABLE oauth_grant DROP COLUMN person_id;
        ALTER TABLE oauth_grant DROP COLUMN daily_cap_micros; ALTER TABLE token DROP COLUMN daily_cap_micros;
        ALTER TABLE oauth_grant DROP COLUMN spent_day; ALTER TABLE oauth_grant DROP COLUMN spent_micros;
        ALTER TABLE account DROP COLUMN admins_consent_only; ALTER TABLE account DROP COLUMN texts_for;
        ALTER TABLE message DROP COLUMN carrier; ALTER TABLE message DROP COLUMN sent_us;
        ALTER TABLE message DROP COLUMN cost_micros; ALTER TABLE message DROP COLUMN charged_micros;
        ALTER TABLE transit DROP COLUMN cost_micros;
        ALTER TABLE account DROP COLUMN low_balance_micros;
        DROP TABLE text_template; DROP TABLE refused_request;
        DROP TABLE report_poll; DROP TABLE latency_day; DROP TABLE smpp_session;
        DROP TABLE smpp_user; DROP TABLE smpp_bind; DROP TABLE account_reply; DROP TABLE inbound_reply;
        DROP TABLE ported_number; ALTER TABLE account DROP COLUMN ported_numbers;
        ALTER TABLE account DROP COLUMN verify_price_micros;
        ALTER TABLE early_receipt DROP COLUMN network;
        DROP TABLE opt_out; DROP TABLE block_rule; DROP TABLE list_change; DROP TABLE verification;
        ALTER TABLE message DROP COLUMN notice; ALTER TABLE message DROP COLUMN country;
        DROP TABLE inbound_number; DROP TABLE inbound; DROP TABLE inbound_part; DROP TABLE inbound_copy;
        ALTER TABLE account DROP COLUMN inbound_url; DROP TABLE inbound_source;
        DROP TABLE alert; DROP TABLE notification; DROP TABLE notify_setting;
        DROP TABLE membership; ALTER TABLE session DROP COLUMN chosen_account_id; DROP TABLE invitation;
        ALTER TABLE session DROP COLUMN proved_us;
        CREATE TABLE invitation (email TEXT PRIMARY KEY, hash BYTEA NOT NULL UNIQUE,
            person_id BIGINT REFERENCES person (id), role TEXT NOT NULL, account_id BIGINT REFERENCES account (id),
            expires_us BIGINT NOT NULL);
        DROP TABLE service_key; DROP TABLE sign_in_try; DROP TABLE known_browser;
        ALTER TABLE account DROP COLUMN former_secret;
        ALTER TABLE account DROP COLUMN former_secret_until_us;
        DELETE FROM schema_migration WHERE number >= 22;
        DELETE FROM schema_fit WHERE number >= 22";
    database.execute(UNDO).await;
    if matches!(database, Database::Postgres(_)) {
        let undo = "ALTER TABLE traffic_fresh DROP COLUMN bucket";
        database.execute(undo).await;
    }
}
