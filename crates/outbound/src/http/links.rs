//! The URLs of this service that a provider calls. Each ends in a proof that this service made it.

use domain::MessageId;
use domain::encryption::KEY_BYTES;
use url::Url;

use crate::proof::ProofKey;

/// What the proof in the URL for inbound messages is about.
const INBOUND: &str = "inbound";

/// Makes and checks the URLs of one carrier.
pub struct CarrierLinks {
    carrier: String,
    /// Without a trailing slash.
    base: String,
    /// The first one makes proofs.
    keys: Vec<ProofKey>,
}

impl CarrierLinks {
    /// A carrier's name needs no encoding in URLs. Without a key nothing is proven.
    pub fn new(carrier: &str, base: &Url, keys: &[[u8; KEY_BYTES]]) -> Self {
        let mut base = base.clone();
        base.set_query(None);
        base.set_fragment(None);
        Self {
            carrier: carrier.to_owned(),
            base: base.as_str().trim_end_matches('/').to_owned(),
            keys: keys.iter().map(|key| ProofKey::new(key)).collect(),
        }
    }

    /// Where the provider sends its reports about a message.
    pub fn report_url(&self, message: MessageId) -> String {
        self.report_url_with(message, &self.proof(message))
    }

    /// The same with this proof: a provider signs the URL that it was given, perhaps with a former key.
    pub(super) fn report_url_with(&self, message: MessageId, proof: &str) -> String {
        let (base, carrier) = (&self.base, &self.carrier);
        format!("{base}/carriers/{carrier}/reports/{message}/{proof}")
    }

    /// Where the provider sends messages from handsets.
    pub fn inbound_url(&self) -> String {
        self.inbound_url_with(&self.proof(INBOUND))
    }

    pub(super) fn inbound_url_with(&self, proof: &str) -> String {
        format!("{}/carriers/{}/inbound/{proof}", self.base, self.carrier)
    }

    pub(super) fn admits_report(&self, message: MessageId, proof: &str) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| key.verifies(&self.carrier, message, proof))
    }

    pub(super) fn admits_inbound(&self, proof: &str) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|key| key.verifies(&self.carrier, INBOUND, proof))
    }

    fn proof(&self, subject: impl std::fmt::Display) -> String {
        let key = self.keys.first();
        key.map_or_else(String::new, |key| key.proof(&self.carrier, subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(carrier: &str, keys: &[u8]) -> CarrierLinks {
        let base = "https://sms.example/api/?x#y".parse().expect("a URL");
        let keys: Vec<_> = keys.iter().map(|key| [*key; KEY_BYTES]).collect();
        CarrierLinks::new(carrier, &base, &keys)
    }

    fn id(number: u64) -> MessageId {
        MessageId::new(number).expect("in range")
    }

    #[test]
    fn only_the_proof_of_its_own_subject_counts() {
        let own = links("beta", &[1]);
        let report = own.report_url(id(7));
        let start = "https://sms.example/api/carriers/beta/reports/7/";
        let proof = report.strip_prefix(start).expect("our URL");
        let inbound = own.inbound_url();
        let start = "https://sms.example/api/carriers/beta/inbound/";
        let text_proof = inbound.strip_prefix(start).expect("our URL");
        assert!(own.admits_report(id(7), proof) && own.admits_inbound(text_proof));
        assert!(!own.admits_report(id(8), proof), "another message");
        assert!(!own.admits_inbound(proof), "a report's proof");
        assert!(!own.admits_report(id(7), text_proof), "an inbound proof");
        assert!(!own.admits_report(id(7), ""), "no proof");
        assert!(
            !links("bet", &[1]).admits_report(id(7), proof),
            "another carrier"
        );
        assert!(
            !links("beta", &[2]).admits_report(id(7), proof),
            "another key"
        );
        assert!(
            links("beta", &[2, 1]).admits_report(id(7), proof),
            "a former key"
        );
        assert!(!links("beta", &[]).admits_report(id(7), ""), "no key");
    }
}
