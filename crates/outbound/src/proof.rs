//! The last part of a URL that a carrier calls, which proves that this service made it.
//!
//! Reports come without a token, from a machine that is trusted only with its own messages. So the URL names the
//! message and contains a keyed hash of it. It is valid for that message only, and reveals neither secret nor key.

use std::fmt::{Display, Write as _};

use ring::hmac;

/// Separates this key from other uses of the secret.
const PURPOSE: &[u8] = b"switchboard carrier reports";
/// How many bytes of the hash are in the URL.
const PROOF_BYTES: usize = 16;

/// The key of a carrier's URLs here. Nodes with the same secret have the same key.
#[derive(Clone)]
pub(crate) struct ProofKey(hmac::Key);

impl ProofKey {
    pub(crate) fn new(secret: &[u8]) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = hmac::sign(&root, PURPOSE);
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    /// The proof for a message or for another subject, in lower-case hexadecimal.
    pub(crate) fn proof(&self, carrier: &str, subject: impl Display) -> String {
        let hash = hmac::sign(&self.0, format!("{carrier}/{subject}").as_bytes());
        let mut text = String::with_capacity(2 * PROOF_BYTES);
        for byte in &hash.as_ref()[..PROOF_BYTES] {
            write!(text, "{byte:02x}").expect("a string takes everything");
        }
        text
    }

    /// Checks a proof.
    ///
    /// Compares hashes of both, so that the time it takes does not reveal where they differ.
    pub(crate) fn verifies(&self, carrier: &str, subject: impl Display, given: &str) -> bool {
        let expected = hmac::sign(&self.0, self.proof(carrier, subject).as_bytes());
        hmac::verify(&self.0, given.as_bytes(), expected.as_ref()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use domain::MessageId;

    use super::*;

    fn id(number: u64) -> MessageId {
        MessageId::new(number).expect("in range")
    }

    #[test]
    fn only_the_proof_of_this_message_counts() {
        let key = ProofKey::new(b"sb_one");
        let proof = key.proof("up", id(7));
        assert_eq!(proof.len(), 32);
        assert!(key.verifies("up", id(7), &proof));
        let upper = proof.to_uppercase();
        let longer = format!("{proof}00");
        let other_token = ProofKey::new(b"sb_two").proof("up", id(7));
        for (name, given) in [
            ("nothing", ""),
            ("cut short", &proof[..30]),
            ("too long", &longer),
            ("capitals", &upper),
            ("another message's", &key.proof("up", id(8))),
            ("another carrier's", &key.proof("upp", id(7))),
            ("another token's", &other_token),
            ("not hexadecimal", "é"),
        ] {
            assert!(!key.verifies("up", id(7), given), "{name}");
        }
    }

    #[test]
    fn it_agrees_with_others() {
        // Computed with Python's hmac.
        let proof = ProofKey::new(b"sb_one").proof("up", id(7));
        assert_eq!(proof, "0796d43e5d4ab97a7897064312e897ed");
    }
}
