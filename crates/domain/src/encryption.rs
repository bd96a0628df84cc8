//! Encryption of secrets in the database: TOTP keys, webhook secrets, texts that carry codes.
//!
//! AES-256-GCM with a separate key for each value, derived from the service's key and 16 random bytes (HKDF-SHA256), so
//! a nonce never repeats under a key. Each value is bound to its row: copied to another row, it does not decrypt.
//!
//! The format of an encrypted value: a version byte, the key's ID (8 bytes), the salt (16 bytes), the ciphertext with
//! its tag.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::{aead, hkdf};

pub const KEY_BYTES: usize = 32;
pub const SALT_BYTES: usize = 16;

const VERSION: u8 = 1;
const ID_BYTES: usize = 8;
const HEAD_BYTES: usize = 1 + ID_BYTES + SALT_BYTES;
/// Marks an encrypted value in a text column; Base64 follows.
const TEXT_PREFIX: &str = "encrypted:";
/// Purposes of derived keys, so that no key serves two of them.
const ID_INFO: &[u8] = b"switchboard key id";
const VALUE_INFO: &[u8] = b"switchboard value";
/// The plain text that the database stores encrypted, to check that a key is the right one.
const PROOF: &[u8] = b"switchboard";
const PROOF_CONTEXT: &str = "service_key.proof";

/// Accepts Base64 with or without padding, because people cut it off.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Identifies a key in the database and in errors. It reveals nothing about the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; ID_BYTES]);

impl KeyId {
    /// Parses the result of `Display`.
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The text is not a key. It is not repeated, because it may still be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key must be 32 random bytes in Base64 or hex; `openssl rand -base64 32` prints a new one"
)]
pub struct BadKey;

/// A key of the service. Its debug form shows only its ID.
#[derive(Clone)]
pub struct ServiceKey {
    id: KeyId,
    bytes: [u8; KEY_BYTES],
}

impl ServiceKey {
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let id = derive(&[], &bytes, ID_INFO);
        Self {
            id: KeyId(id),
            bytes,
        }
    }

    /// Parses a key in Base64 or hex; surrounding white space is ignored.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        if let Some(bytes) = unhex(text) {
            return Ok(Self::new(bytes));
        }
        let url_safe = text.replace('-', "+").replace('_', "/");
        let bytes = BASE64.decode(url_safe).map_err(|_| BadKey)?;
        Ok(Self::new(bytes.try_into().map_err(|_| BadKey)?))
    }

    /// The key in plain text, as a file or the configuration contains it.
    pub fn reveal(&self) -> String {
        BASE64.encode(self.bytes)
    }

    pub const fn id(&self) -> KeyId {
        self.id
    }
}

impl PartialEq for ServiceKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceKey({})", self.id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    #[error("the value is not encrypted")]
    NotEncrypted,
    /// Encrypted with a key that is not in the key ring.
    #[error(
        "the value is encrypted with the key {0}, which this node does not have; add it to security.former_keys"
    )]
    UnknownKey(KeyId),
    /// Changed, or copied from another row.
    #[error("the encrypted value was changed, or belongs to another row")]
    Forged,
}

/// The keys of the service: the active one encrypts, all of them decrypt.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRing {
    keys: Vec<ServiceKey>,
    active: usize,
}

impl KeyRing {
    /// A key ring with the newest key, which encrypts, and former keys, which only decrypt.
    pub fn new(newest: ServiceKey, former: impl IntoIterator<Item = ServiceKey>) -> Self {
        let mut keys = vec![newest];
        for key in former {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Self { keys, active: 0 }
    }

    /// The same keys with another active one; `None` if it is not among them.
    pub fn with_active(&self, id: KeyId) -> Option<Self> {
        let active = self.keys.iter().position(|key| key.id == id)?;
        Some(Self {
            keys: self.keys.clone(),
            active,
        })
    }

    /// The same keys and one more that only decrypts.
    #[must_use]
    pub fn with_former(&self, key: ServiceKey) -> Self {
        let mut ring = self.clone();
        if !ring.keys.contains(&key) {
            ring.keys.push(key);
        }
        ring
    }

    pub fn active(&self) -> KeyId {
        self.active_key().id
    }

    pub fn active_key(&self) -> &ServiceKey {
        &self.keys[self.active]
    }

    /// The key that was configured first, whether or not it is active.
    pub fn newest(&self) -> KeyId {
        self.keys[0].id
    }

    /// Keys for a purpose of their own, derived from each key: the active one's first.
    pub fn derived_keys(&self, purpose: &str) -> Vec<[u8; KEY_BYTES]> {
        let others = self.keys.iter().filter(|key| key.id != self.active());
        let keys = std::iter::once(self.active_key()).chain(others);
        keys.map(|key| derive(&[], &key.bytes, purpose.as_bytes()))
            .collect()
    }

    /// The IDs of all keys, newest first.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys.iter().map(|key| key.id)
    }

    /// The first bytes of every value that the active key encrypts.
    pub fn head(&self) -> Vec<u8> {
        let mut head = vec![VERSION];
        head.extend(self.active().0);
        head
    }

    /// The first characters of every text that the active key encrypts.
    pub fn text_head(&self) -> String {
        // Nine bytes are exactly twelve characters of Base64, so the head does not depend on what follows.
        format!("{TEXT_PREFIX}{}", BASE64.encode(self.head()))
    }

    /// Encrypts a value for one row, such as `person.totp 7`. The salt must be random and must never be reused.
    pub fn encrypt(&self, context: &str, plain: &[u8], salt: [u8; SALT_BYTES]) -> Vec<u8> {
        let key = &self.keys[self.active];
        let mut value = Vec::with_capacity(HEAD_BYTES + plain.len() + 16);
        value.push(VERSION);
        value.extend(key.id.0);
        value.extend(salt);
        let mut cipher = plain.to_vec();
        sealing_key(key, &salt)
            .seal_in_place_append_tag(
                nonce(),
                aead::Aad::from(additional_data(&value, context)),
                &mut cipher,
            )
            .expect("a value is shorter than 64 GiB");
        value.append(&mut cipher);
        value
    }

    /// Decrypts the result of [`Self::encrypt`] for the same row.
    pub fn decrypt(&self, context: &str, value: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let id = key_of(value).ok_or(DecryptError::NotEncrypted)?;
        let key = self.keys.iter().find(|key| key.id == id);
        let key = key.ok_or(DecryptError::UnknownKey(id))?;
        let (head, cipher) = value.split_at(HEAD_BYTES);
        let salt = &head[1 + ID_BYTES..];
        let mut cipher = cipher.to_vec();
        let plain = sealing_key(key, salt)
            .open_in_place(
                nonce(),
                aead::Aad::from(additional_data(head, context)),
                &mut cipher,
            )
            .map_err(|_| DecryptError::Forged)?;
        Ok(plain.to_vec())
    }

    /// [`Self::encrypt`] for a column that holds text.
    pub fn encrypt_text(&self, context: &str, plain: &str, salt: [u8; SALT_BYTES]) -> String {
        let value = self.encrypt(context, plain.as_bytes(), salt);
        format!("{TEXT_PREFIX}{}", BASE64.encode(value))
    }

    /// Decrypts the result of [`Self::encrypt_text`].
    pub fn decrypt_text(&self, context: &str, text: &str) -> Result<String, DecryptError> {
        let value = decode_text(text).ok_or(DecryptError::NotEncrypted)?;
        let plain = self.decrypt(context, &value)?;
        String::from_utf8(plain).map_err(|_| DecryptError::Forged)
    }

    /// A known value, encrypted. A node that decrypts it has the right key.
    pub fn proof(&self, salt: [u8; SALT_BYTES]) -> Vec<u8> {
        self.encrypt(PROOF_CONTEXT, PROOF, salt)
    }

    /// Whether the active key decrypts a [`Self::proof`].
    pub fn proves(&self, proof: &[u8]) -> bool {
        key_of(proof) == Some(self.active())
            && self.decrypt(PROOF_CONTEXT, proof).as_deref() == Ok(PROOF)
    }
}

/// The key that a value is encrypted with; `None` if it is not encrypted.
pub fn key_of(value: &[u8]) -> Option<KeyId> {
    if value.first() != Some(&VERSION) || value.len() < HEAD_BYTES + 16 {
        return None;
    }
    let id = value[1..=ID_BYTES].try_into().expect("as many bytes");
    Some(KeyId(id))
}

/// The key that a text is encrypted with; `None` if it is not encrypted.
pub fn key_of_text(text: &str) -> Option<KeyId> {
    key_of(&decode_text(text)?)
}

fn decode_text(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.strip_prefix(TEXT_PREFIX)?).ok()
}

/// The additional data that the tag covers besides the ciphertext.
fn additional_data(head: &[u8], context: &str) -> Vec<u8> {
    [head, context.as_bytes()].concat()
}

/// A constant nonce is safe: each value has its own key.
fn nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN])
}

fn sealing_key(key: &ServiceKey, salt: &[u8]) -> aead::LessSafeKey {
    let bytes: [u8; KEY_BYTES] = derive(salt, &key.bytes, VALUE_INFO);
    let key = aead::UnboundKey::new(&aead::AES_256_GCM, &bytes);
    aead::LessSafeKey::new(key.expect("as many bytes as the cipher's key has"))
}

/// HKDF with SHA-256.
pub(crate) fn derive<const BYTES: usize>(salt: &[u8], key: &[u8], info: &[u8]) -> [u8; BYTES] {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut bytes = [0; BYTES];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(key)
        .expand(&[info], Length(BYTES))
        .and_then(|derived| derived.fill(&mut bytes))
        .expect("shorter than HKDF's limit");
    bytes
}

fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    if text.len() != BYTES * 2 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> ServiceKey {
        ServiceKey::new([byte; KEY_BYTES])
    }

    #[test]
    fn a_key_is_parsed_in_every_usual_form() {
        let expected = ServiceKey::new([0xfb; KEY_BYTES]);
        for text in [
            "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=",
            "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s",
            "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s\n",
            &"fb".repeat(32),
            &"FB".repeat(32),
        ] {
            assert_eq!(ServiceKey::parse(text).as_ref(), Ok(&expected), "{text}");
        }
        assert_eq!(ServiceKey::parse(&expected.reveal()), Ok(expected));
    }

    #[test]
    fn invalid_keys_are_refused_and_not_repeated() {
        for text in ["", "hunter2", &"fb".repeat(31), &"fg".repeat(32)] {
            let error = ServiceKey::parse(text).expect_err(text).to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }

    #[test]
    fn debug_output_shows_only_the_id_of_a_key() {
        let ring = KeyRing::new(key(1), [key(2)]);
        let shown = format!("{ring:?}");
        assert!(shown.contains(&ring.active().to_string()), "{shown}");
        assert!(!shown.contains("1, 1") && !shown.contains(&key(1).reveal()));
        let id = ring.active();
        assert_eq!(KeyId::parse(&id.to_string()), Some(id));
        assert_ne!(key(1).id(), key(2).id());
    }

    #[test]
    fn a_former_key_decrypts_and_the_newest_encrypts() {
        let old = KeyRing::new(key(1), []);
        let value = old.encrypt("context", b"plain", [7; SALT_BYTES]);
        let both = KeyRing::new(key(2), [key(1), key(2)]);
        assert_eq!(both.ids().count(), 2);
        assert_eq!(
            both.decrypt("context", &value).as_deref(),
            Ok(&b"plain"[..])
        );
        let renewed = both.encrypt("context", b"plain", [8; SALT_BYTES]);
        assert_eq!(key_of(&renewed), Some(both.newest()));
        assert_eq!(
            old.decrypt("context", &renewed),
            Err(DecryptError::UnknownKey(both.newest()))
        );
        let as_before = both.with_active(old.active()).expect("it is there");
        let value = as_before.encrypt("context", b"plain", [9; SALT_BYTES]);
        assert!(old.decrypt("context", &value).is_ok());
        assert_eq!(old.with_active(both.newest()), None);
    }

    #[test]
    fn a_value_decrypts_only_in_its_own_place_and_unchanged() {
        let ring = KeyRing::new(key(1), []);
        let value = ring.encrypt("person.totp 1", b"plain", [7; SALT_BYTES]);
        assert_eq!(
            ring.decrypt("person.totp 2", &value),
            Err(DecryptError::Forged)
        );
        for at in 0..value.len() {
            let mut changed = value.clone();
            changed[at] ^= 1;
            assert!(ring.decrypt("person.totp 1", &changed).is_err(), "{at}");
        }
        for short in 0..value.len() {
            assert!(ring.decrypt("person.totp 1", &value[..short]).is_err());
        }
    }

    #[test]
    fn unencrypted_values_are_recognised() {
        let ring = KeyRing::new(key(1), []);
        for text in ["", "whsec_abc", "encrypted:", "encrypted:???"] {
            assert_eq!(key_of_text(text), None, "{text}");
            let got = ring.decrypt_text("context", text);
            assert_eq!(got, Err(DecryptError::NotEncrypted), "{text}");
        }
    }

    #[test]
    fn derived_keys_differ_by_key_and_purpose_and_the_active_one_is_first() {
        let (old, both) = (KeyRing::new(key(1), []), KeyRing::new(key(2), [key(1)]));
        let as_before = both.with_active(old.active()).expect("it is there");
        let [first] = old.derived_keys("a").try_into().expect("one key");
        assert_eq!(as_before.derived_keys("a")[0], first);
        assert_eq!(both.derived_keys("a")[1], first);
        assert_eq!(both.derived_keys("a").len(), 2);
        assert_ne!(old.derived_keys("b")[0], first);
    }

    #[test]
    fn a_proof_is_valid_only_for_its_key() {
        let ring = KeyRing::new(key(1), []);
        let proof = ring.proof([3; SALT_BYTES]);
        assert!(ring.proves(&proof));
        assert!(!KeyRing::new(key(2), []).proves(&proof));
        let both = KeyRing::new(key(2), [key(1)]);
        assert!(!both.proves(&proof));
        let as_before = both.with_active(ring.active()).expect("it is there");
        assert!(as_before.proves(&proof));
    }

    proptest! {
        #[test]
        fn encrypted_values_round_trip(
            plain in ".{0,200}", context in ".{0,40}", salt in any::<[u8; SALT_BYTES]>(), secret in any::<[u8; KEY_BYTES]>(),
        ) {
            let ring = KeyRing::new(ServiceKey::new(secret), []);
            let text = ring.encrypt_text(&context, &plain, salt);
            prop_assert_eq!(key_of_text(&text), Some(ring.active()));
            prop_assert!(text.starts_with(&ring.text_head()));
            prop_assert!(ring.encrypt(&context, plain.as_bytes(), salt).starts_with(&ring.head()));
            prop_assert!(plain.len() < 4 || !text.contains(&plain));
            prop_assert_eq!(ring.decrypt_text(&context, &text), Ok(plain));
        }
    }
}
