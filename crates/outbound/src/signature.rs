//! Signs callbacks by the Standard Webhooks specification.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// The prefix of a secret. The key follows in Base64.
const PREFIX: &str = "whsec_";

/// The secret contains no key. The text does not repeat it, because it may still be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the account's callback secret is not 'whsec_' and a key in Base64")]
pub struct BadSecret;

/// The value of `webhook-signature`: for each secret the version and the hash over ID, time and body, separated by
/// spaces.
pub fn sign(
    secrets: &[&str],
    webhook_id: &str,
    timestamp: &str,
    body: &[u8],
) -> Result<String, BadSecret> {
    if secrets.is_empty() {
        return Err(BadSecret);
    }
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| sign_with(secret, webhook_id, timestamp, body))
        .collect::<Result<_, _>>()?;
    Ok(signatures.join(" "))
}

fn sign_with(
    secret: &str,
    webhook_id: &str,
    timestamp: &str,
    body: &[u8],
) -> Result<String, BadSecret> {
    let key = secret.strip_prefix(PREFIX).ok_or(BadSecret)?;
    let key = STANDARD.decode(key).map_err(|_| BadSecret)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let mut hash = hmac::Context::with_key(&key);
    for part in [
        webhook_id.as_bytes(),
        b".",
        timestamp.as_bytes(),
        b".",
        body,
    ] {
        hash.update(part);
    }
    let mut signature = String::with_capacity(48);
    signature.push_str("v1,");
    STANDARD.encode_string(hash.sign(), &mut signature);
    Ok(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_others() {
        for (name, id, time, body, signature) in [
            (
                "the example that the specification's libraries share",
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                "1614265330",
                r#"{"test": 2432232314}"#,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            (
                "a report of ours, by Python's hmac",
                "7",
                "1731672000",
                r#"{"id":"7","status":2,"error":43}"#,
                "v1,q28PO4RY16KuDVZbIsLwthCCAovQCBQ8kcw29JdmQpE=",
            ),
        ] {
            let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
            let got = sign(&[secret], id, time, body.as_bytes());
            assert_eq!(got.as_deref(), Ok(signature), "{name}");
        }
    }

    #[test]
    fn a_secret_without_a_key_is_refused() {
        for secret in ["", "whsec", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_?"] {
            assert_eq!(
                sign(&[secret], "1", "2", b"3"),
                Err(BadSecret),
                "{secret:?}"
            );
        }
        assert_eq!(sign(&[], "1", "2", b"3"), Err(BadSecret));
    }

    #[test]
    fn two_secrets_give_two_signatures() {
        let (new, old) = ("whsec_bmV3", "whsec_b2xk");
        let one = |secret| sign(&[secret], "1", "2", b"3").expect("a key");
        let both = sign(&[new, old], "1", "2", b"3").expect("keys");
        assert_eq!(both, format!("{} {}", one(new), one(old)));
    }
}
