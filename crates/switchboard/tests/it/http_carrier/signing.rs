//! Signs requests as the providers do. Their own libraries check that (`sdks`).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::Clock as _;
use engine::clock::SystemClock;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use ring::{digest, hmac};
use serde_json::json;

use crate::smpp::octets::hex;

pub(super) type Headers = Vec<(&'static str, String)>;

/// Twilio signs the whole URL and the sorted fields of the form.
pub(super) fn twilio(key: &str, url: &str, fields: &[(&str, &str)]) -> Headers {
    let mut sorted = fields.to_vec();
    sorted.sort_unstable();
    let fields: String = sorted.iter().flat_map(|pair| [pair.0, pair.1]).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes());
    let signature = hmac::sign(&key, format!("{url}{fields}").as_bytes());
    vec![("X-Twilio-Signature", STANDARD.encode(signature))]
}

/// Vonage sends a token with a hash of the body. This one is valid for this many seconds.
pub(super) fn vonage(key: &str, body: &[u8], seconds: i64) -> Headers {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let hash = hex(digest::digest(&digest::SHA256, body).as_ref());
    let now = SystemClock.now().as_second();
    let claims = json!({
        "iss": "Vonage", "iat": now - 3600, "exp": now + seconds, "payload_hash": hash,
    });
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    vec![("Authorization", format!("Bearer {signed}.{tag}"))]
}

fn telnyx_pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a key")
}

/// The public key that belongs to a seed.
pub(super) fn telnyx_key(seed: u8) -> String {
    STANDARD.encode(telnyx_pair(seed).public_key())
}

/// Telnyx signs the time and the body. This was this many seconds ago.
pub(super) fn telnyx(seed: u8, body: &[u8], seconds: i64) -> Headers {
    let time = (SystemClock.now().as_second() - seconds).to_string();
    let signed = [time.as_bytes(), b"|", body].concat();
    vec![
        (
            "Telnyx-Signature-Ed25519",
            STANDARD.encode(telnyx_pair(seed).sign(&signed)),
        ),
        ("Telnyx-Timestamp", time),
    ]
}
