//! API tokens: their form and their fingerprint.
//!
//! A token reads `sb_`, 32 random letters and digits, then a checksum of 6, so that people and secret scanners
//! recognise one, and a mistyped one is refused without asking a database. Only its SHA-256 is ever stored.

use std::fmt;

use crate::sha256;

/// How every token starts.
pub const PREFIX: &str = "sb_";
const RANDOM_CHARS: usize = 32;
const CHECKSUM_CHARS: usize = 6;
/// The length of every token, in characters.
pub const TOKEN_CHARS: usize = PREFIX.len() + RANDOM_CHARS + CHECKSUM_CHARS;
/// How many random bytes make a token: two for each character keep the bias of the remainder negligible.
pub const SEED_BYTES: usize = RANDOM_CHARS * 2;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A token as its owner holds it. Shown once, never logged: its debug form is blank.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// Makes a token of random bytes.
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        let mut token = String::with_capacity(TOKEN_CHARS);
        token.push_str(PREFIX);
        for pair in seed.chunks_exact(2) {
            token.push(letter(u32::from(u16::from_le_bytes([pair[0], pair[1]]))));
        }
        push_checksum(&mut token);
        Self(token)
    }

    /// Reads a token that a caller sent: `None` when it cannot be one of ours.
    pub fn parse(value: &str) -> Option<Self> {
        let well_formed =
            value.len() == TOKEN_CHARS && value.starts_with(PREFIX) && value.is_ascii();
        if !well_formed {
            return None;
        }
        let mut expected = value[..TOKEN_CHARS - CHECKSUM_CHARS].to_owned();
        push_checksum(&mut expected);
        (expected == value).then_some(Self(expected))
    }

    /// The token itself, to hand to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the store keeps in its place.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(…)")
    }
}

/// The SHA-256 of a secret: of a token, a one-time link or a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes a secret.
    pub fn of(secret: &str) -> Self {
        Self(sha256(&[secret.as_bytes()]))
    }

    /// Reads back what [`Self::as_bytes`] gave.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes as both databases keep them.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A hash of a secret is still nobody's business.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

fn letter(number: u32) -> char {
    char::from(ALPHABET[(number % 62) as usize])
}

fn push_checksum(token: &mut String) {
    let mut rest = crc32(token.as_bytes());
    for _ in 0..CHECKSUM_CHARS {
        token.push(letter(rest));
        rest /= 62;
    }
}

/// CRC-32 (IEEE): six letters of base 62 hold all of it.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_the_common_crc32() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn a_secret_never_shows_in_debug_output() {
        let token = TokenSecret::from_seed(&[7; SEED_BYTES]);
        let shown = format!("{token:?} {:?}", token.hash());
        assert_eq!(shown, "TokenSecret(…) TokenHash(…)");
    }

    proptest! {
        #[test]
        fn a_token_is_recognised_and_one_changed_letter_is_not(
            seed in proptest::array::uniform32(any::<u8>()),
            place in 3..TOKEN_CHARS,
            other in any::<u8>(),
        ) {
            let mut bytes = [0; SEED_BYTES];
            bytes[..32].copy_from_slice(&seed);
            let token = TokenSecret::from_seed(&bytes);
            prop_assert_eq!(token.reveal().len(), TOKEN_CHARS);
            prop_assert_eq!(TokenSecret::parse(token.reveal()), Some(token.clone()));

            let mut changed = token.reveal().to_owned().into_bytes();
            changed[place] = ALPHABET[usize::from(other) % 62];
            let changed = String::from_utf8(changed).expect("ASCII");
            if changed != token.reveal() {
                prop_assert_eq!(TokenSecret::parse(&changed), None);
            }
        }

        #[test]
        fn parsing_never_panics(value in "\\PC{0,60}|sb_[0-9A-Za-zä]{30,45}") {
            let parsed = TokenSecret::parse(&value);
            prop_assert!(parsed.is_none_or(|token| token.reveal() == value));
        }
    }
}
