//! Texts that carry confirmation codes. The caller who requests a code must not read it: the code proves that somebody
//! else has the handset. So the text is stored encrypted, and only until the message has ended.

use crate::encryption::{DecryptError, KeyRing, SALT_BYTES};
use crate::number::msisdn::Msisdn;

/// Shown instead of such a text.
pub const SHOWN: &str = "(confirmation code)";

/// Encrypts a text for its recipient.
pub fn encrypt(keys: &KeyRing, to: &Msisdn, text: &str, salt: [u8; SALT_BYTES]) -> Vec<u8> {
    keys.encrypt(&context(to), text.as_bytes(), salt)
}

/// Decrypts the result of [`encrypt`] for the same recipient.
pub fn decrypt(keys: &KeyRing, to: &Msisdn, encrypted: &[u8]) -> Result<String, DecryptError> {
    let text = keys.decrypt(&context(to), encrypted)?;
    String::from_utf8(text).map_err(|_| DecryptError::Forged)
}

fn context(to: &Msisdn) -> String {
    format!("code_text.text {to}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encryption::{KEY_BYTES, ServiceKey};

    #[test]
    fn a_text_decrypts_only_with_its_key_and_number() {
        let keys = |byte| KeyRing::new(ServiceKey::new([byte; KEY_BYTES]), []);
        let number = |text| Msisdn::parse(text).expect("a number");
        let (to, other) = (number("+37120000001"), number("+37120000002"));
        let encrypted = encrypt(&keys(1), &to, "12345 is it", [7; SALT_BYTES]);
        assert_eq!(
            decrypt(&keys(1), &to, &encrypted).as_deref(),
            Ok("12345 is it")
        );
        assert_eq!(
            decrypt(&keys(1), &other, &encrypted),
            Err(DecryptError::Forged)
        );
        assert!(matches!(
            decrypt(&keys(2), &to, &encrypted),
            Err(DecryptError::UnknownKey(_))
        ));
        assert!(!encrypted.windows(5).any(|octets| octets == b"12345"));
    }
}
