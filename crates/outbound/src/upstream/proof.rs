//! The end of a report's address: proof that this service made it.
//!
//! Reports come without a token, from a machine that is ours to trust only as far as the message goes that it is about.
//! So the address says which message that is, and holds a keyed hash of it. It is good for that one message, and who
//! finds it in a log has no token and no key.

use std::fmt::Write as _;

use domain::MessageId;
use ring::hmac;

/// What the key is for: the token itself signs nothing.
const PURPOSE: &[u8] = b"switchboard carrier reports";
/// So many bytes of the hash stand in the address.
const PROOF_BYTES: usize = 16;

/// The key to a carrier's report addresses. Every node with the same token has the same one.
#[derive(Clone)]
pub(super) struct ProofKey(hmac::Key);

impl ProofKey {
    /// The key of a token.
    pub(super) fn new(token: &str) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
        let derived = hmac::sign(&root, PURPOSE);
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    /// The proof for a message that a carrier is given: lower-case hexadecimal digits.
    pub(super) fn proof(&self, carrier: &str, message: MessageId) -> String {
        let hash = hmac::sign(&self.0, format!("{carrier}/{message}").as_bytes());
        let mut text = String::with_capacity(2 * PROOF_BYTES);
        for byte in &hash.as_ref()[..PROOF_BYTES] {
            write!(text, "{byte:02x}").expect("a string takes everything");
        }
        text
    }

    /// Whether a proof is the one for this message.
    ///
    /// Hashes of both are compared, not the two themselves: then the time it takes tells nothing about where they differ.
    pub(super) fn verifies(&self, carrier: &str, message: MessageId, given: &str) -> bool {
        let expected = hmac::sign(&self.0, self.proof(carrier, message).as_bytes());
        hmac::verify(&self.0, given.as_bytes(), expected.as_ref()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> MessageId {
        MessageId::new(number).expect("in range")
    }

    #[test]
    fn only_the_proof_of_this_message_counts() {
        let key = ProofKey::new("sb_one");
        let proof = key.proof("up", id(7));
        assert_eq!(proof.len(), 32);
        assert!(key.verifies("up", id(7), &proof));
        let upper = proof.to_uppercase();
        let longer = format!("{proof}00");
        let other_token = ProofKey::new("sb_two").proof("up", id(7));
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
        // By Python's hmac.
        let proof = ProofKey::new("sb_one").proof("up", id(7));
        assert_eq!(proof, "0796d43e5d4ab97a7897064312e897ed");
    }
}
