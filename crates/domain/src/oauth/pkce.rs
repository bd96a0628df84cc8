//! PKCE (RFC 7636) with SHA-256: proves that a code is redeemed by the client that asked for it.

use std::fmt;

use crate::sha256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The SHA-256 of a secret that the client keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge([u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("code_challenge must be the SHA-256 of the verifier in base64url, 43 characters")]
pub struct NotAChallenge;

impl Challenge {
    /// Parses a challenge of the method `S256`.
    pub fn parse(text: &str) -> Result<Self, NotAChallenge> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotAChallenge)?;
        bytes.try_into().map(Self).map_err(|_| NotAChallenge)
    }

    /// The stored form.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Whether the verifier matches. Comparing hashes needs no constant time.
    pub fn is_met_by(&self, verifier: &Verifier) -> bool {
        self.0 == sha256(&[verifier.0.as_bytes()])
    }
}

/// The secret behind a challenge: 43 to 128 letters, digits and `-._~`. It is never logged, so its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("code_verifier must have 43 to 128 letters, digits or -._~")]
pub struct NotAVerifier;

impl Verifier {
    pub fn parse(text: &str) -> Result<Self, NotAVerifier> {
        let is_unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        if (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAVerifier)
        }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn the_standards_example_holds() {
        let challenge = Challenge::parse(CHALLENGE).expect("a challenge");
        let verifier = Verifier::parse(VERIFIER).expect("a verifier");
        assert!(challenge.is_met_by(&verifier));
        let other = Verifier::parse(&VERIFIER.replace('d', "e")).expect("a verifier");
        assert!(!challenge.is_met_by(&other));
        assert_eq!(format!("{verifier:?}"), "Verifier(…)");
    }

    #[test]
    fn invalid_challenges_are_refused() {
        let padded = format!("{CHALLENGE}=");
        for (name, text) in [
            ("empty", ""),
            ("one letter short", &CHALLENGE[1..]),
            ("padded", &padded),
            ("plain base64", &CHALLENGE.replace('-', "+")),
            ("a verifier of 64", &"a".repeat(64)),
            // The last character has two bits that belong to no byte.
            ("loose bits", &format!("{}N", &CHALLENGE[..42])),
        ] {
            assert_eq!(Challenge::parse(text), Err(NotAChallenge), "{name}");
        }
    }

    #[test]
    fn verifiers_have_the_length_and_letters_of_the_standard() {
        for (text, ok) in [
            ("a".repeat(42), false),
            ("a".repeat(43), true),
            ("-._~".repeat(32), true),
            ("a".repeat(129), false),
            (format!("{}+", "a".repeat(43)), false),
            (format!("{}ä", "a".repeat(43)), false),
            (format!("{} ", "a".repeat(43)), false),
        ] {
            assert_eq!(Verifier::parse(&text).is_ok(), ok, "{text}");
        }
    }

    proptest! {
        #[test]
        fn only_the_secret_itself_meets_its_challenge(a in "[a-zA-Z0-9._~-]{43,128}", b in "[a-zA-Z0-9._~-]{43,128}") {
            let digest = URL_SAFE_NO_PAD.encode(sha256(&[a.as_bytes()]));
            let challenge = Challenge::parse(&digest).expect("a challenge");
            prop_assert!(challenge.is_met_by(&Verifier::parse(&a).expect("a verifier")));
            prop_assert_eq!(challenge.is_met_by(&Verifier::parse(&b).expect("a verifier")), a == b);
        }
    }
}
