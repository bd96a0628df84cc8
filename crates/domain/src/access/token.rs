//! API tokens: their format and their hash.
//!
//! A token is `sb_`, 32 random letters and digits, and a checksum of 6 characters. People and secret scanners recognise
//! it, and a mistyped token is refused without a database query. Only its SHA-256 is stored.

use std::fmt;

use crate::sha256;

pub const PREFIX: &str = "sb_";
const RANDOM_CHARS: usize = 32;
const CHECKSUM_CHARS: usize = 6;
pub const TOKEN_CHARS: usize = PREFIX.len() + RANDOM_CHARS + CHECKSUM_CHARS;
/// Two random bytes for each character keep the modulo bias negligible.
pub const SEED_BYTES: usize = RANDOM_CHARS * 2;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A token in plain text. It is shown once and never logged, so its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        let mut token = String::with_capacity(TOKEN_CHARS);
        token.push_str(PREFIX);
        for pair in seed.chunks_exact(2) {
            token.push(letter(u32::from(u16::from_le_bytes([pair[0], pair[1]]))));
        }
        push_checksum(&mut token);
        Self(token)
    }

    /// Parses a token from a request; `None` if the format or the checksum is wrong.
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

    /// The token in plain text, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The form that the database stores.
    pub fn hash(&self) -> TokenHash {
        TokenHash::from_secret(&self.0)
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
    pub fn from_secret(secret: &str) -> Self {
        Self(sha256(&[secret.as_bytes()]))
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Hides the hash as well.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// One of 62 letters and digits.
pub(crate) fn letter(number: u32) -> char {
    char::from(ALPHABET[(number % 62) as usize])
}

fn push_checksum(token: &mut String) {
    let mut rest = crc32(token.as_bytes());
    for _ in 0..CHECKSUM_CHARS {
        token.push(letter(rest));
        rest /= 62;
    }
}

/// CRC-32 (IEEE); six base-62 characters are enough for 32 bits.
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
        fn a_token_is_recognised_unless_a_character_changed(
            seed in proptest::array::uniform32(any::<u8>()),
            position in 3..TOKEN_CHARS,
            other in any::<u8>(),
        ) {
            let mut bytes = [0; SEED_BYTES];
            bytes[..32].copy_from_slice(&seed);
            let token = TokenSecret::from_seed(&bytes);
            prop_assert_eq!(token.reveal().len(), TOKEN_CHARS);
            prop_assert_eq!(TokenSecret::parse(token.reveal()), Some(token.clone()));

            let mut changed = token.reveal().to_owned().into_bytes();
            changed[position] = ALPHABET[usize::from(other) % 62];
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
