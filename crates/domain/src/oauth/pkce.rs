//! The proof that who redeems a code is who asked for it (RFC 7636), by SHA-256 only.

use std::fmt;

use crate::sha256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What a client shows when it asks: the SHA-256 of a secret that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge([u8; 32]);

/// The text is no challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("code_challenge must be the SHA-256 of the verifier in base64url, 43 characters")]
pub struct NotAChallenge;

impl Challenge {
    /// Reads a challenge of the method `S256`.
    pub fn parse(text: &str) -> Result<Self, NotAChallenge> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotAChallenge)?;
        bytes.try_into().map(Self).map_err(|_| NotAChallenge)
    }

    /// The bytes as both databases keep them.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads back what [`Self::as_bytes`] wrote.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Whether this is the secret behind it. Hashes are compared, so the time that it takes tells nothing of use.
    pub fn is_met_by(&self, verifier: &Verifier) -> bool {
        self.0 == sha256(&[verifier.0.as_bytes()])
    }
}

/// The secret behind a challenge: 43 to 128 letters, digits and `-._~`. Never logged: its debug form is blank.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier(String);

/// The text is no verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("code_verifier must have 43 to 128 letters, digits or -._~")]
pub struct NotAVerifier;

impl Verifier {
    /// Checks a verifier.
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
    fn what_is_no_challenge_is_refused() {
        let padded = format!("{CHALLENGE}=");
        for (name, text) in [
            ("empty", ""),
            ("one letter short", &CHALLENGE[1..]),
            ("padded", &padded),
            ("plain base64", &CHALLENGE.replace('-', "+")),
            ("a verifier of 64", &"a".repeat(64)),
            // The last letter holds two bits that belong to no byte.
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
