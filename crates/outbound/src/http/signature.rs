//! Checks the signatures of providers that sign what they send.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::Timestamp;
use domain::ports::CarrierPost;
use jiff::SignedDuration;
use ring::{digest, hmac, signature};
use serde::Deserialize;
use url::form_urlencoded;

/// How far the time of a signature may be from ours, as in the provider's own libraries.
const TELNYX_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// How a provider signs.
#[derive(Clone)]
pub struct SignatureRules {
    pub scheme: SignatureScheme,
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureScheme {
    /// `X-Twilio-Signature`: HMAC-SHA1 in Base64 over the URL and the fields of the form, sorted by name.
    Twilio,
    /// `X-Signature`: HMAC-SHA256 in hexadecimal over the body and the header `X-Timestamp`.
    SmsGate,
    /// `Telnyx-Signature-Ed25519`: Ed25519 in Base64 over the header `Telnyx-Timestamp`, `|` and the body. The key is
    /// the public one, in Base64. The time must be within five minutes of ours.
    Telnyx,
    /// `Authorization: Bearer`: a JWT with HS256, whose claim `payload_hash` is the SHA-256 of the body, and which has
    /// not expired.
    Vonage,
    /// `Authorization: Basic`: the key is the user, a colon and the password.
    Basic,
    /// HMAC over the body.
    Hmac {
        /// The header that has it, in lower case.
        header: String,
        hash: HmacHash,
        encoding: HmacEncoding,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacHash {
    Sha1,
    Sha256,
    Sha512,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacEncoding {
    Hex,
    Base64,
}

impl SignatureRules {
    /// Whether the provider signed this request. `url` is the one that the provider was given.
    pub(super) fn verifies(&self, url: &str, post: CarrierPost<'_>, now: Timestamp) -> bool {
        match &self.scheme {
            SignatureScheme::Twilio => self.verifies_twilio(url, post),
            SignatureScheme::SmsGate => self.verifies_sms_gate(post),
            SignatureScheme::Telnyx => self.verifies_telnyx(post, now).unwrap_or(false),
            SignatureScheme::Vonage => self.verifies_vonage(post, now).unwrap_or(false),
            SignatureScheme::Basic => self.verifies_basic(post).unwrap_or(false),
            SignatureScheme::Hmac {
                header,
                hash,
                encoding,
            } => post
                .header(header)
                .and_then(|given| encoding.decode(given.trim()))
                .is_some_and(|given| {
                    let key = hmac::Key::new(hash.algorithm(), self.key.as_bytes());
                    hmac::verify(&key, post.body, &given).is_ok()
                }),
        }
    }

    /// Whether the key can be one of its scheme.
    pub fn has_valid_key(&self) -> bool {
        match self.scheme {
            SignatureScheme::Telnyx => {
                let key = STANDARD.decode(self.key.trim());
                key.is_ok_and(|key| key.len() == signature::ED25519_PUBLIC_KEY_LEN)
            }
            _ => true,
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

    fn verifies_telnyx(&self, post: CarrierPost<'_>, now: Timestamp) -> Option<bool> {
        let given = post.header("telnyx-signature-ed25519")?;
        let given = STANDARD.decode(given.trim()).ok()?;
        let timestamp = post.header("telnyx-timestamp")?;
        let signed_at = Timestamp::from_second(timestamp.trim().parse().ok()?).ok()?;
        if signed_at.duration_since(now).abs() > TELNYX_TOLERANCE {
            return Some(false);
        }
        let signed = [timestamp.as_bytes(), b"|", post.body].concat();
        let key = STANDARD.decode(self.key.trim()).ok()?;
        let key = signature::UnparsedPublicKey::new(&signature::ED25519, key);
        Some(key.verify(&signed, &given).is_ok())
    }

    fn verifies_vonage(&self, post: CarrierPost<'_>, now: Timestamp) -> Option<bool> {
        #[derive(Deserialize)]
        struct Header {
            alg: String,
        }
        #[derive(Deserialize)]
        struct Claims {
            payload_hash: String,
            /// In seconds since 1970.
            exp: Option<i64>,
        }
        let token = authorization(post, "Bearer")?;
        let (signed, given) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.as_bytes());
        let is_signed = hmac::verify(&key, signed.as_bytes(), &decode(given)?).is_ok();
        if header.alg != "HS256" || !is_signed {
            return None;
        }
        let claims: Claims = serde_json::from_slice(&decode(claims)?).ok()?;
        if claims.exp.is_some_and(|exp| exp <= now.as_second()) {
            return Some(false);
        }
        let hash = unhex(&claims.payload_hash)?;
        Some(digest::digest(&digest::SHA256, post.body).as_ref() == hash)
    }

    fn verifies_basic(&self, post: CarrierPost<'_>) -> Option<bool> {
        let given = STANDARD.decode(authorization(post, "Basic")?).ok()?;
        // Comparing keyed hashes takes the same time wherever the two differ.
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.as_bytes());
        let expected = hmac::sign(&key, self.key.as_bytes());
        Some(hmac::verify(&key, &given, expected.as_ref()).is_ok())
    }
}

/// What follows the scheme in the header `Authorization`.
fn authorization<'a>(post: CarrierPost<'a>, scheme: &str) -> Option<&'a str> {
    let (name, rest) = post.header("authorization")?.trim().split_once(' ')?;
    name.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

impl HmacHash {
    pub(super) fn algorithm(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }
}

impl HmacEncoding {
    fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => unhex(text),
            Self::Base64 => STANDARD.decode(text).ok(),
        }
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
    use super::super::samples::now;
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
            rules(key).verifies(url, post, now())
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
        assert!(!rules("12345").verifies(url, unsigned, now()), "none");
    }

    #[test]
    fn a_signature_of_sms_gate_is_checked() {
        let verifies = |key: &str, headers: &[(&str, &str)], body: &[u8]| {
            let rules = SignatureRules {
                scheme: SignatureScheme::SmsGate,
                key: key.to_owned(),
            };
            rules.verifies("https://any.example", CarrierPost { headers, body }, now())
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

    /// Checks what a right key verifies, and that nothing else does. `signed` are the headers of `BODY`.
    fn check(scheme: &SignatureScheme, key: &str, wrong_key: &str, signed: &[(&str, &str)]) {
        let verifies = |key: &str, headers: &[(&str, &str)], body: &[u8]| {
            let (scheme, key) = (scheme.clone(), key.to_owned());
            let rules = SignatureRules { scheme, key };
            rules.verifies("https://any.example", CarrierPost { headers, body }, now())
        };
        assert!(verifies(key, signed, BODY), "{scheme:?}");
        assert!(
            !verifies(wrong_key, signed, BODY),
            "{scheme:?}: another key"
        );
        assert!(!verifies(key, &[], BODY), "{scheme:?}: none");
        if *scheme != SignatureScheme::Basic {
            assert!(
                !verifies(key, signed, b"{\"a\":2}"),
                "{scheme:?}: another body"
            );
        }
        for index in 0..signed.len() {
            for value in ["", "xyz", "Bearer a.b.c", "Basic !"] {
                let mut changed = signed.to_vec();
                changed[index].1 = value;
                assert!(!verifies(key, &changed, BODY), "{scheme:?}: {value}");
            }
        }
    }

    const BODY: &[u8] = b"{\"a\":1}";

    #[test]
    fn an_hmac_of_the_body_is_checked() {
        use HmacEncoding::{Base64, Hex};
        // Computed with Python's hmac.
        for (hash, encoding, value) in [
            (HmacHash::Sha1, Base64, "x+uXluyBBfPAqrNqBbyl6LtPW6I="),
            (
                HmacHash::Sha256,
                Hex,
                "6e73a1a57a6e6edb9dff174d2a53bc61a27cfc639a2964743ed35fd59c8bc82d",
            ),
            (
                HmacHash::Sha512,
                Hex,
                "b80200615b2495ef8589515c7b0c64cd47a20d09a04bc1393663bf8645e7a525\
                 c838784e4dabb29230bae7b836fa58d6ec5d1b4c9bbcc29e5c68b306849082a1",
            ),
        ] {
            let scheme = SignatureScheme::Hmac {
                header: "x-hub-signature".to_owned(),
                hash,
                encoding,
            };
            check(&scheme, "hunter2", "hunter3", &[("x-hub-signature", value)]);
        }
    }

    #[test]
    fn user_and_password_are_checked() {
        let signed = [("authorization", "basic dXNlcjpodW50ZXIy")];
        check(
            &SignatureScheme::Basic,
            "user:hunter2",
            "user:hunter3",
            &signed,
        );
    }

    #[test]
    fn a_signature_of_telnyx_is_checked() {
        // Computed with Python's cryptography.
        let key = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
        let value = "w25tCrEkJMBtM6h5G6cl9eEnH6MZrQopyB0eNGQ5p0tK4lK6LFBhTVNJZVS0WX2kj0oyyLFdcN5pp/UCDcYUDw==";
        let signed = [
            ("telnyx-signature-ed25519", value),
            ("telnyx-timestamp", "1731672000"),
        ];
        let wrong_key = STANDARD.encode([7; 32]);
        check(&SignatureScheme::Telnyx, key, &wrong_key, &signed);
        let rules = SignatureRules {
            scheme: SignatureScheme::Telnyx,
            key: key.to_owned(),
        };
        let post = CarrierPost {
            headers: &signed,
            body: BODY,
        };
        for (seconds, is_valid) in [(-301, false), (-300, true), (300, true), (301, false)] {
            let at = now() + SignedDuration::from_secs(seconds);
            assert_eq!(rules.verifies("", post, at), is_valid, "{seconds} s later");
        }
        for (key, is_valid) in [(key, true), ("hunter2", false), ("", false)] {
            let rules = SignatureRules {
                scheme: SignatureScheme::Telnyx,
                key: key.to_owned(),
            };
            assert_eq!(rules.has_valid_key(), is_valid, "{key}");
        }
    }

    #[test]
    fn a_token_of_vonage_is_checked() {
        // Computed with Python's hmac.
        let header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
        let rest = "eyJpYXQiOjE3MzE2NzIwMDAsImlzcyI6IlZvbmFnZSIsInBheWxvYWRfaGFzaCI6IjAxNWFiZDdmNWNjNTdhMmRkOTRiNzU5M\
                    GYwNGFkODA4NDI3MzkwNWVlMzNlYzVjZWJlYWU2MjI3NmE5N2Y4NjIifQ.pMjTUyD7ZzxkQqmuY5mfs7c5_LvpRqDoYB1d5Opa6S0";
        let value = format!("Bearer {header}.{rest}");
        let signed = [("authorization", value.as_str())];
        check(&SignatureScheme::Vonage, "hunter2", "hunter3", &signed);
        let hash = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
        let expiring = |at: i64| format!(r#"{{"payload_hash":"{hash}","exp":{at}}}"#);
        let (now_s, algorithm) = (now().as_second(), r#"{"alg":"HS256"}"#);
        let unhashed = r#"{"payload_hash":"00"}"#;
        // Right keys, but another algorithm, no hash of the body, or too late.
        for (header, claims, is_valid) in [
            (r#"{"alg":"none"}"#, unhashed, false),
            (algorithm, "{}", false),
            (algorithm, expiring(now_s).as_str(), false),
            (algorithm, expiring(now_s + 1).as_str(), true),
        ] {
            let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
            let key = hmac::Key::new(hmac::HMAC_SHA256, b"hunter2");
            let tag = hmac::sign(&key, format!("{header}.{claims}").as_bytes());
            let token = format!("Bearer {header}.{claims}.{}", URL_SAFE_NO_PAD.encode(tag));
            let rules = SignatureRules {
                scheme: SignatureScheme::Vonage,
                key: "hunter2".to_owned(),
            };
            let headers = [("authorization", token.as_str())];
            let post = CarrierPost {
                headers: &headers,
                body: BODY,
            };
            let verifies = rules.verifies("https://any.example", post, now());
            assert_eq!(verifies, is_valid, "{token}");
        }
    }
}
