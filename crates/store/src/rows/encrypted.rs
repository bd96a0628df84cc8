//! Which columns are encrypted, and what opening a database does about them.
//!
//! The database stores the name of the key that encrypts. A node without that key does not start. Opening the database
//! encrypts everything that is not encrypted with that key: plain values of an older version, and values from before a
//! rotation.

use std::borrow::Cow;

use domain::encryption::{KeyId, KeyRing, SALT_BYTES, ServiceKey};
use domain::ports::{Catalogue, CatalogueEntry, CatalogueKind};

use crate::rows::Corrupt;
use crate::{KeyRetention, OpenError};

/// How many rows one statement encrypts again.
pub(crate) const BATCH: u16 = 500;

/// The key that encrypts new values in an opened database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encrypting {
    /// The current key of the database.
    AsBefore,
    /// The first key of the configuration.
    Newest,
}

/// The row of `service_key`.
pub(crate) struct KeyRow {
    pub(crate) key_id: String,
    pub(crate) proof: Vec<u8>,
    /// The key itself, if it is stored in the database.
    pub(crate) stored_key: Option<String>,
}

impl KeyRow {
    /// The row for a database without a key, or after a rotation.
    pub(crate) fn from_keys(keys: &KeyRing, keep: KeyRetention) -> Self {
        Self {
            key_id: keys.active().to_string(),
            proof: keys.proof(salt()),
            stored_key: (keep == KeyRetention::InDatabase).then(|| keys.active_key().reveal()),
        }
    }

    /// The keys, including a key stored in the database, with the database's key as the active one.
    pub(crate) fn check(&self, keys: &KeyRing, database: &str) -> Result<KeyRing, OpenError> {
        let stored_key = self.stored_key.as_deref().map(ServiceKey::parse);
        let keys = match stored_key {
            Some(Ok(stored_key)) => &keys.with_former(stored_key),
            _ => keys,
        };
        let active = KeyId::parse(&self.key_id).and_then(|id| keys.with_active(id));
        match active {
            Some(keys) if keys.proves(&self.proof) => Ok(keys),
            _ => Err(OpenError::WrongKey {
                database: database.to_owned(),
                named: self.key_id.clone(),
                ours: keys.ids().map(|id| id.to_string()).collect(),
            }),
        }
    }
}

/// The encryption context of an account's signing secrets, the current and the former one.
pub(crate) fn secret_context(account_name: &str) -> String {
    format!("account.callback_secret {account_name}")
}

/// The encryption context of a person's TOTP key, offered or active.
pub(crate) fn totp_context(person_id: i64) -> String {
    format!("person.totp {person_id}")
}

/// The encryption context of a version of the carriers and routes in the database.
pub(crate) fn plan_context(version: u32) -> String {
    format!("catalogue.plan {version}")
}

/// The content of a version of a catalogue, as it is stored.
pub(crate) fn stored_content<'a>(
    keys: &KeyRing,
    kind: CatalogueKind,
    version: u32,
    content: &'a str,
) -> Cow<'a, str> {
    if kind.is_encrypted() {
        encrypt_text(keys, &plan_context(version), content).into()
    } else {
        content.into()
    }
}

/// Decrypts the content of a catalogue, if it is encrypted.
pub(crate) fn read_content(keys: &KeyRing, mut catalogue: Catalogue) -> Result<Catalogue, Corrupt> {
    let CatalogueEntry { kind, version, .. } = catalogue.entry;
    if kind.is_encrypted() {
        catalogue.content = decrypt_text(keys, &plan_context(version), &catalogue.content)?;
    }
    Ok(catalogue)
}

/// Random bytes for one encrypted value.
pub(crate) fn salt() -> [u8; SALT_BYTES] {
    let mut bytes = [0; SALT_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// Encrypts a text for its column.
pub(crate) fn encrypt_text(keys: &KeyRing, context: &str, plain: &str) -> String {
    keys.encrypt_text(context, plain, salt())
}

/// Encrypts bytes for their column.
pub(crate) fn encrypt(keys: &KeyRing, context: &str, plain: &[u8]) -> Vec<u8> {
    keys.encrypt(context, plain, salt())
}

/// Decrypts a text column.
pub(crate) fn decrypt_text(keys: &KeyRing, context: &str, text: &str) -> Result<String, Corrupt> {
    keys.decrypt_text(context, text).map_err(|error| {
        tracing::error!(context, %error, "a stored secret cannot be decrypted");
        Corrupt("encrypted text")
    })
}

/// Decrypts a column of bytes.
pub(crate) fn decrypt(keys: &KeyRing, context: &str, value: &[u8]) -> Result<Vec<u8>, Corrupt> {
    keys.decrypt(context, value).map_err(|error| {
        tracing::error!(context, %error, "a stored secret cannot be decrypted");
        Corrupt("encrypted value")
    })
}

/// Encrypts a text with the active key. It may be encrypted with a former key, or not at all.
pub(crate) fn renew_text(keys: &KeyRing, context: &str, text: &str) -> Result<String, OpenError> {
    let plain = match domain::encryption::key_of_text(text) {
        None => text.to_owned(),
        Some(_) => keys
            .decrypt_text(context, text)
            .map_err(|source| undecryptable(context, source))?,
    };
    Ok(encrypt_text(keys, context, &plain))
}

/// Like [`renew_text`], for bytes.
pub(crate) fn renew(keys: &KeyRing, context: &str, value: &[u8]) -> Result<Vec<u8>, OpenError> {
    let plain = match domain::encryption::key_of(value) {
        None => value.to_vec(),
        Some(_) => keys
            .decrypt(context, value)
            .map_err(|source| undecryptable(context, source))?,
    };
    Ok(encrypt(keys, context, &plain))
}

fn undecryptable(context: &str, source: domain::encryption::DecryptError) -> OpenError {
    OpenError::Undecryptable {
        context: context.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(newest: u8, former: &[u8]) -> KeyRing {
        let former = former.iter().map(|byte| ServiceKey::new([*byte; 32]));
        KeyRing::new(ServiceKey::new([newest; 32]), former)
    }

    #[test]
    fn the_key_of_the_database_encrypts() {
        let key_row = KeyRow::from_keys(&ring(1, &[]), KeyRetention::Elsewhere);
        for (name, keys, fits) in [
            ("the same", ring(1, &[]), true),
            ("a newer one besides", ring(2, &[1]), true),
            ("another", ring(2, &[]), false),
        ] {
            let checked = key_row.check(&keys, "db");
            assert_eq!(checked.is_ok(), fits, "{name}");
            match checked {
                Ok(keys) => assert_eq!(keys.active().to_string(), key_row.key_id, "{name}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains(&key_row.key_id), "{said}");
                    assert!(said.contains("security.key"), "{said}");
                }
            }
        }
        let forged = KeyRow {
            proof: ring(2, &[]).proof(salt()),
            key_id: key_row.key_id,
            stored_key: None,
        };
        assert!(forged.check(&ring(1, &[]), "db").is_err(), "a forged proof");
    }

    #[test]
    fn a_key_stored_in_the_database_is_used() {
        let key_row = KeyRow::from_keys(&ring(1, &[]), KeyRetention::InDatabase);
        let keys = key_row
            .check(&ring(2, &[]), "db")
            .expect("the key is stored");
        assert_eq!(keys.active(), ring(1, &[]).active());
        assert_eq!(keys.newest(), ring(2, &[]).active());
        let broken = KeyRow {
            stored_key: Some("no key".to_owned()),
            ..key_row
        };
        assert!(broken.check(&ring(2, &[]), "db").is_err());
    }

    #[test]
    fn unencrypted_values_and_those_with_a_former_key_are_renewed() {
        let (old, both) = (ring(1, &[]), ring(2, &[1]));
        let former = encrypt_text(&old, "place", "secret");
        for text in ["secret", &former] {
            let renewed = renew_text(&both, "place", text).expect("known");
            assert!(renewed.starts_with(&both.text_head()));
            assert_eq!(
                decrypt_text(&both, "place", &renewed).ok().as_deref(),
                Some("secret")
            );
        }
        let former = encrypt(&old, "place", b"secret");
        for value in [&b"secret"[..], &former] {
            let renewed = renew(&both, "place", value).expect("known");
            assert_eq!(
                decrypt(&both, "place", &renewed).ok().as_deref(),
                Some(&b"secret"[..])
            );
        }
        let unknown = renew(&ring(2, &[]), "place", &former).expect_err("unknown key");
        assert!(format!("{unknown:?}").contains("UnknownKey"));
    }
}
