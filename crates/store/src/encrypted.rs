//! Which columns are encrypted, and what opening a database does about them.
//!
//! The database stores the name of the key that encrypts. A node without that key does not start. Opening the database
//! encrypts everything that is not encrypted with that key: plain values of an older version, and values from before a
//! rotation.

use domain::encryption::{KeyId, KeyRing, SALT_BYTES, ServiceKey};

use crate::rows::Corrupt;
use crate::{KeyRetention, OpenError};

/// How many rows are encrypted again by one statement.
pub(crate) const BATCH: u16 = 500;

/// Which key is to encrypt once a database is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encrypting {
    /// The one that the database names.
    AsBefore,
    /// The first of the configuration.
    Newest,
}

/// The row of `service_key`.
pub(crate) struct NamedKey {
    pub(crate) key_id: String,
    pub(crate) proof: Vec<u8>,
    /// A key that is kept in the database itself.
    pub(crate) kept: Option<String>,
}

impl NamedKey {
    /// For a database that names no key yet, and for one that is to name another.
    pub(crate) fn from_keys(keys: &KeyRing, keep: KeyRetention) -> Self {
        Self {
            key_id: keys.active().to_string(),
            proof: keys.proof(salt()),
            kept: (keep == KeyRetention::InDatabase).then(|| keys.active_key().reveal()),
        }
    }

    /// The keys, of which the one encrypts that the database names; the one that it keeps is among them.
    pub(crate) fn check(&self, keys: &KeyRing, database: &str) -> Result<KeyRing, OpenError> {
        let kept = self.kept.as_deref().map(ServiceKey::parse);
        let keys = match kept {
            Some(Ok(kept)) => &keys.with_former(kept),
            _ => keys,
        };
        let named = KeyId::parse(&self.key_id).and_then(|id| keys.with_active(id));
        match named {
            Some(keys) if keys.proves(&self.proof) => Ok(keys),
            _ => Err(OpenError::WrongKey {
                database: database.to_owned(),
                named: self.key_id.clone(),
                ours: keys.ids().map(|id| id.to_string()).collect(),
            }),
        }
    }
}

/// The place of an account's webhook secrets, the current one and the former one.
pub(crate) fn secret_place(account_name: &str) -> String {
    format!("account.callback_secret {account_name}")
}

/// The place of a person's TOTP key, offered or active.
pub(crate) fn totp_place(person_id: i64) -> String {
    format!("person.totp {person_id}")
}

/// Fresh bytes for a value that is encrypted.
pub(crate) fn salt() -> [u8; SALT_BYTES] {
    let mut bytes = [0; SALT_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// Encrypts a text for its column.
pub(crate) fn encrypt_text(keys: &KeyRing, place: &str, plain: &str) -> String {
    keys.encrypt_text(place, plain, salt())
}

/// Encrypts bytes for their column.
pub(crate) fn encrypt(keys: &KeyRing, place: &str, plain: &[u8]) -> Vec<u8> {
    keys.encrypt(place, plain, salt())
}

/// Reads a column that holds an encrypted text.
pub(crate) fn decrypt_text(keys: &KeyRing, place: &str, text: &str) -> Result<String, Corrupt> {
    keys.decrypt_text(place, text).map_err(|error| {
        tracing::error!(place, %error, "a stored secret cannot be decrypted");
        Corrupt("encrypted text")
    })
}

/// Reads a column that holds encrypted bytes.
pub(crate) fn decrypt(keys: &KeyRing, place: &str, value: &[u8]) -> Result<Vec<u8>, Corrupt> {
    keys.decrypt(place, value).map_err(|error| {
        tracing::error!(place, %error, "a stored secret cannot be decrypted");
        Corrupt("encrypted value")
    })
}

/// A text that the active key does not encrypt yet, encrypted with it. What is not encrypted at all is taken as it is.
pub(crate) fn renew_text(keys: &KeyRing, place: &str, text: &str) -> Result<String, OpenError> {
    let plain = match domain::encryption::key_of_text(text) {
        None => text.to_owned(),
        Some(_) => keys
            .decrypt_text(place, text)
            .map_err(|source| undecryptable(place, source))?,
    };
    Ok(encrypt_text(keys, place, &plain))
}

/// The same for bytes.
pub(crate) fn renew(keys: &KeyRing, place: &str, value: &[u8]) -> Result<Vec<u8>, OpenError> {
    let plain = match domain::encryption::key_of(value) {
        None => value.to_vec(),
        Some(_) => keys
            .decrypt(place, value)
            .map_err(|source| undecryptable(place, source))?,
    };
    Ok(encrypt(keys, place, &plain))
}

fn undecryptable(place: &str, source: domain::encryption::DecryptError) -> OpenError {
    OpenError::Undecryptable {
        place: place.to_owned(),
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
    fn a_database_decides_which_key_encrypts() {
        let named = NamedKey::from_keys(&ring(1, &[]), KeyRetention::Elsewhere);
        for (name, keys, fits) in [
            ("the same", ring(1, &[]), true),
            ("a newer one besides", ring(2, &[1]), true),
            ("another", ring(2, &[]), false),
        ] {
            let checked = named.check(&keys, "db");
            assert_eq!(checked.is_ok(), fits, "{name}");
            match checked {
                Ok(keys) => assert_eq!(keys.active().to_string(), named.key_id, "{name}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains(&named.key_id), "{said}");
                    assert!(said.contains("security.key"), "{said}");
                }
            }
        }
        let forged = NamedKey {
            proof: ring(2, &[]).proof(salt()),
            key_id: named.key_id,
            kept: None,
        };
        assert!(forged.check(&ring(1, &[]), "db").is_err(), "a forged proof");
    }

    #[test]
    fn a_kept_key_serves_whoever_opens_the_database() {
        let named = NamedKey::from_keys(&ring(1, &[]), KeyRetention::InDatabase);
        let keys = named.check(&ring(2, &[]), "db").expect("it is kept");
        assert_eq!(keys.active(), ring(1, &[]).active());
        assert_eq!(keys.newest(), ring(2, &[]).active());
        let broken = NamedKey {
            kept: Some("no key".to_owned()),
            ..named
        };
        assert!(broken.check(&ring(2, &[]), "db").is_err());
    }

    #[test]
    fn what_is_plain_or_under_a_former_key_is_renewed() {
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
