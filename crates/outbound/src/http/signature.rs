//! Checks the signatures of providers that sign what they send.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::ports::CarrierPost;
use ring::hmac;
use url::form_urlencoded;

/// How a provider signs.
#[derive(Clone)]
pub struct SignatureRules {
    pub scheme: SignatureScheme,
    pub key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureScheme {
    /// `X-Twilio-Signature`: HMAC-SHA1 in Base64 over the URL and the fields of the form, sorted by name.
    Twilio,
    /// `X-Signature`: HMAC-SHA256 in hexadecimal over the body and the header `X-Timestamp`.
    SmsGate,
}

impl SignatureRules {
    /// Whether the provider signed this request. `url` is the one that the provider was given.
    pub(super) fn verifies(&self, url: &str, post: CarrierPost<'_>) -> bool {
        match self.scheme {
            SignatureScheme::Twilio => self.verifies_twilio(url, post),
            SignatureScheme::SmsGate => self.verifies_sms_gate(post),
        }
    }

    fn verifies_twilio(&self, url: &str, post: CarrierPost<'_>) -> bool {
        let given = post.header("x-twilio-signature");
        let Some(given) = given.and_then(|given| STANDARD.decode(given.trim()).ok()) else {
            return false;
        };
        let mut fields: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(post.body) {
            fields.entry(name).or_default().insert(value);
        }
        let mut signed = url.to_owned();
        for (name, values) in &fields {
            for value in values {
                signed.push_str(name);
                signed.push_str(value);
            }
        }
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, self.key.as_bytes());
        hmac::verify(&key, signed.as_bytes(), &given).is_ok()
    }

    fn verifies_sms_gate(&self, post: CarrierPost<'_>) -> bool {
        let headers = (post.header("x-signature"), post.header("x-timestamp"));
        let (Some(given), Some(timestamp)) = headers else {
            return false;
        };
        let Some(given) = unhex(given.trim()) else {
            return false;
        };
        let signed = [post.body, timestamp.as_bytes()].concat();
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.as_bytes());
        hmac::verify(&key, &signed, &given).is_ok()
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_of_twilio_is_checked() {
        // The example that Twilio's libraries share.
        let url = "https://mycompany.com/myapp.php?foo=1&bar=2";
        let body = b"CallSid=CA1234567890ABCDE&Caller=%2B14158675309&To=%2B18005551212&Digits=1234&From=%2B14158675309";
        let rules = |key: &str| SignatureRules {
            scheme: SignatureScheme::Twilio,
            key: key.to_owned(),
        };
        let verifies = |key: &str, url: &str, signature: &str, body: &[u8]| {
            let headers = [("x-twilio-signature", signature)];
            let post = CarrierPost {
                headers: &headers,
                body,
            };
            rules(key).verifies(url, post)
        };
        let signature = "RSOYDt4T1cUTdK1PDd93/VVr8B8=";
        assert!(verifies("12345", url, signature, body));
        assert!(!verifies("12346", url, signature, body), "another key");
        assert!(
            !verifies("12345", "https://example.com/", signature, body),
            "another URL"
        );
        assert!(
            !verifies("12345", url, signature, b"Digits=1"),
            "another body"
        );
        assert!(
            !verifies("12345", url, "RSOYDt4T1cUTdK1PDd93/VVr8B9=", body),
            "not Base64"
        );
        assert!(!verifies("12345", url, "", body), "an empty one");
        let unsigned = CarrierPost { headers: &[], body };
        assert!(!rules("12345").verifies(url, unsigned), "none");
    }

    #[test]
    fn a_signature_of_sms_gate_is_checked() {
        let verifies = |key: &str, headers: &[(&str, &str)], body: &[u8]| {
            let rules = SignatureRules {
                scheme: SignatureScheme::SmsGate,
                key: key.to_owned(),
            };
            rules.verifies("https://any.example", CarrierPost { headers, body })
        };
        // Computed with Python's hmac.
        let signature = "9682f0e2ec900bac543bd71554c13e49839eb518d1e529c7b57c3ffd00f3795b";
        let time = ("x-timestamp", "1731672000");
        let signed = [("x-signature", signature), time];
        assert!(verifies("hunter2", &signed, b"{\"a\":1}"));
        assert!(!verifies("hunter3", &signed, b"{\"a\":1}"), "another key");
        assert!(!verifies("hunter2", &signed, b"{\"a\":2}"), "another body");
        let later = [("x-signature", signature), ("x-timestamp", "1731672001")];
        assert!(!verifies("hunter2", &later, b"{\"a\":1}"), "another time");
        for headers in [
            &[][..],
            &[time],
            &[("x-signature", signature)],
            &[("x-signature", "xyz"), time],
        ] {
            assert!(!verifies("hunter2", headers, b"{\"a\":1}"), "{headers:?}");
        }
    }
}
