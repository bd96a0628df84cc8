//! Texts from handsets that carriers send by HTTP: their address here, and by what a repetition is recognised.

use domain::Msisdn;
use domain::inbound::number::InboundNumber;
use ring::digest::{Context, SHA256};
use url::Url;

use crate::proof::ProofKey;

/// What the proof in the address is for. No message has this ID.
pub(crate) const SUBJECT: &str = "inbound";
/// The longest sender that is kept.
const MAX_SENDER_CHARS: usize = 20;

/// The address to which a carrier sends texts. `base` is the URL of this service, as the carrier reaches it.
pub(crate) fn inbound_url(base: &Url, carrier: &str, key: &ProofKey) -> Url {
    let mut address = base.clone();
    address.set_query(None);
    address.set_fragment(None);
    if let Ok(mut path) = address.path_segments_mut() {
        let proof = key.proof(carrier, SUBJECT);
        path.pop_if_empty()
            .extend(["carriers", carrier, SUBJECT, &proof]);
    }
    address
}

/// The source of a text: a hash of the carrier and of what it calls the text.
pub(crate) fn source(carrier: &str, identity: &[&str]) -> [u8; 16] {
    let mut context = Context::new(&SHA256);
    for part in std::iter::once(&carrier).chain(identity) {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    let mut hash = [0; 16];
    hash.copy_from_slice(&context.finish().as_ref()[..16]);
    hash
}

/// The sender as it is shown: with a plus sign if it is a phone number, and without characters that nobody can see.
pub(crate) fn sender(text: &str) -> String {
    let text = text.trim();
    if let Ok(InboundNumber::Msisdn(number)) =
        InboundNumber::from_address(text, text.starts_with('+'))
    {
        return Msisdn::to_string(&number);
    }
    let visible = text.chars().filter(|c| !c.is_control());
    visible.take(MAX_SENDER_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_ends_with_a_proof_of_the_carrier() {
        let key = ProofKey::new(b"sb_one");
        let base: Url = "https://sms.example/api/?a=b#c".parse().expect("a URL");
        let address = inbound_url(&base, "a b", &key);
        let (start, proof) = address.as_str().rsplit_once('/').expect("a path");
        assert_eq!(start, "https://sms.example/api/carriers/a%20b/inbound");
        assert!(key.verifies("a b", SUBJECT, proof));
        assert!(!key.verifies("a", SUBJECT, proof));
    }

    #[test]
    fn a_source_is_that_of_one_text() {
        let one = source("up", &["7", "2030-01-31 07:30:00"]);
        assert_eq!(one, source("up", &["7", "2030-01-31 07:30:00"]));
        for (name, other) in [
            (
                "another carrier",
                source("upp", &["7", "2030-01-31 07:30:00"]),
            ),
            ("another ID", source("up", &["8", "2030-01-31 07:30:00"])),
            ("another time", source("up", &["7", "2030-01-31 07:30:01"])),
            ("shifted", source("up7", &["", "2030-01-31 07:30:00"])),
        ] {
            assert_ne!(one, other, "{name}");
        }
    }

    #[test]
    fn a_sender_is_shown_with_its_plus_sign() {
        for (given, shown) in [
            ("+37120000001", "+37120000001"),
            (" 37120000001", "+37120000001"),
            ("1234", "1234"),
            ("Ac\u{7}me", "Acme"),
            ("a very long name of a sender", "a very long name of "),
        ] {
            assert_eq!(sender(given), shown);
        }
    }
}
