//! Encrypted columns, and the keys that decrypt them.

use std::sync::Arc;

use domain::person::TotpSecret;
use domain::ports::{CatalogueKind, Store};
use domain::{AccountId, KeyRing, PersonId, ServiceKey};
use store::{OpenError, Options};

use super::fixture::Database;
use super::older_schema::undo_encryption;
use super::people::member;
use super::sample::{at, create_account};

on_both_databases!(
    secrets_are_not_readable_in_the_database,
    values_of_an_older_version_are_encrypted_at_the_start,
    a_node_without_the_key_is_refused_with_advice,
    a_rotation_makes_the_former_key_unnecessary,
    one_of_two_nodes_with_different_keys_is_refused,
);

const TOTP: TotpSecret = TotpSecret::new(*b"twenty bytes, plain!");
const CARRIER: &str = "password of a carrier";
/// Counts the plain values in columns that should be encrypted.
const PLAIN: &str = "
    SELECT (SELECT count(*) FROM account WHERE substr(callback_secret, 1, 10) <> 'encrypted:')
        + (SELECT count(*) FROM account WHERE substr(former_secret, 1, 10) <> 'encrypted:')
        + (SELECT count(*) FROM person WHERE length(totp_secret) < 60 OR length(totp_offered) < 60)
        + (SELECT count(*) FROM catalogue WHERE kind = 7 AND substr(content, 1, 10) <> 'encrypted:')";
const ENCRYPTED: &str = "
    SELECT (SELECT count(*) FROM account WHERE callback_secret IS NOT NULL)
        + (SELECT count(*) FROM person WHERE totp_offered IS NOT NULL)
        + (SELECT count(*) FROM catalogue WHERE kind = 7)";

fn key(byte: u8) -> ServiceKey {
    ServiceKey::new([byte; 32])
}

fn with_keys(newest: u8, former: &[u8]) -> Options {
    Options::new(KeyRing::new(key(newest), former.iter().copied().map(key)))
}

async fn open(database: &Database, options: &Options) -> Result<Arc<dyn Store>, OpenError> {
    let url = database.url().parse().expect("a valid URL");
    store::open(&url, options).await
}

/// An account with a secret, a person who is offered a TOTP key, and a carrier with a password.
async fn fill(store: &Arc<dyn Store>) -> (AccountId, PersonId) {
    let account = create_account(store, "acme").await;
    let person = member(store, "ann@example.com", account).await;
    let offered = store.offer_second_factor(person, &TOTP).await;
    assert!(offered.expect("answers"));
    let stored = store
        .import(CatalogueKind::Plan, 0, CARRIER, 1, at(1))
        .await;
    assert!(stored.expect("answers"));
    (account, person)
}

async fn check(store: &Arc<dyn Store>, (account, person): (AccountId, PersonId), secret: &str) {
    let secrets = store.find_signing_secrets(account).await.expect("answers");
    assert_eq!(secrets.expect("the account exists").newest, secret);
    let factor = store.find_second_factor(person).await.expect("answers");
    assert_eq!(factor.offered, Some(TOTP));
    let plan = store.find_catalogue(CatalogueKind::Plan, 1).await;
    let plan = plan.expect("answers").expect("it is stored");
    assert_eq!(plan.content, CARRIER);
}

async fn number(database: &Database, sql: &str) -> i64 {
    database.numbers(sql, 1).await[0][0].expect("a number")
}

async fn secrets_are_not_readable_in_the_database(database: Database) {
    let store = database.open().await;
    let both = fill(&store).await;
    check(&store, both, "secret of acme").await;
    let replaced = store.replace_signing_secret(both.0, "second", at(50)).await;
    assert!(replaced.expect("answers"));
    check(&store, both, "second").await;
    assert_eq!(number(&database, PLAIN).await, 0);
    assert_eq!(number(&database, ENCRYPTED).await, 3);
}

/// Writes plain values, as an older version did.
async fn make_plain(database: &Database) {
    let in_hex = |text: String, byte: &u8| format!("{text}{byte:02x}");
    let totp = TOTP.as_bytes().iter().fold(String::new(), in_hex);
    let totp = match database {
        Database::Sqlite(_) => format!("X'{totp}'"),
        Database::Postgres(_) => format!("'\\x{totp}'::bytea"),
    };
    let plain = format!(
        "UPDATE account SET callback_secret = 'whsec_plain'; UPDATE person SET totp_offered = {totp}"
    );
    database.execute(&plain).await;
}

async fn values_of_an_older_version_are_encrypted_at_the_start(database: Database) {
    let store = database.open().await;
    let both = fill(&store).await;
    drop(store);
    make_plain(&database).await;
    undo_encryption(&database).await;
    let store = database.open().await;
    check(&store, both, "whsec_plain").await;
    assert_eq!(number(&database, PLAIN).await, 0);
    // A backup of an older version is plain, too.
    drop(store);
    make_plain(&database).await;
    let store = database.open().await;
    check(&store, both, "whsec_plain").await;
    assert_eq!(number(&database, PLAIN).await, 0);
}

async fn a_node_without_the_key_is_refused_with_advice(database: Database) {
    let first = open(&database, &with_keys(1, &[])).await.expect("opens");
    let both = fill(&first).await;
    let refused = open(&database, &with_keys(2, &[])).await.err();
    let refused = refused.expect("another key").to_string();
    let key_id = key(1).id().to_string();
    for part in [&key_id, "security.key", "service.key", "former_keys"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let second = open(&database, &with_keys(1, &[])).await.expect("opens");
    check(&second, both, "secret of acme").await;
}

async fn a_rotation_makes_the_former_key_unnecessary(database: Database) {
    let url = database.url().parse().expect("a valid URL");
    let before = open(&database, &with_keys(1, &[])).await.expect("opens");
    let both = fill(&before).await;
    // A node that has both keys still encrypts with the old one: others could not read the new one.
    let first = open(&database, &with_keys(2, &[1])).await.expect("opens");
    let replaced = first.replace_signing_secret(both.0, "second", at(50)).await;
    assert!(replaced.expect("answers"));
    check(&before, both, "second").await;

    let rotated = store::rotate_key(&url, &with_keys(2, &[1])).await;
    assert_eq!(rotated.expect("rotates"), 3);
    check(&first, both, "second").await;
    // A value that a node from before the rotation writes is encrypted again by the next rotation.
    let replaced = first.replace_signing_secret(both.0, "third", at(50)).await;
    assert!(replaced.expect("answers"));
    let again = store::rotate_key(&url, &with_keys(2, &[1])).await;
    assert_eq!(again.expect("rotates"), 1);
    let over = store::rotate_key(&url, &with_keys(2, &[1])).await;
    assert_eq!(over.expect("rotates"), 0);

    let after = open(&database, &with_keys(2, &[])).await.expect("opens");
    check(&after, both, "third").await;
    let refused = open(&database, &with_keys(1, &[])).await.err();
    assert!(matches!(refused, Some(OpenError::WrongKey { .. })));
    let rotated_back = store::rotate_key(&url, &with_keys(1, &[])).await.err();
    assert!(matches!(rotated_back, Some(OpenError::WrongKey { .. })));
}

/// Two nodes open an empty database at once, each with a new key.
async fn one_of_two_nodes_with_different_keys_is_refused(database: Database) {
    let (one, other) = (with_keys(1, &[]), with_keys(2, &[]));
    let (one, other) = tokio::join!(open(&database, &one), open(&database, &other));
    assert!(one.is_ok() != other.is_ok());
    let refused = one.err().or(other.err());
    assert!(matches!(refused, Some(OpenError::WrongKey { .. })));
}
