//! The second factor: time-based codes (RFC 6238), and recovery codes for a lost device.

use std::fmt;

use data_encoding::BASE32_NOPAD;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

use super::Email;
use crate::access::token::TokenHash;

/// The length of the hash, as RFC 4226 recommends.
pub const TOTP_BYTES: usize = 20;
/// The number of random bytes of a recovery code.
pub const RECOVERY_BYTES: usize = 10;
/// How many recovery codes a person gets.
pub const RECOVERY_CODES: usize = 10;

/// How long a code is valid, in seconds.
const STEP_S: i64 = 30;
/// How many steps a device's clock may be off, in either direction.
const SKEW: i64 = 1;
const DIGITS: usize = 6;
const MODULUS: u32 = 1_000_000;
/// The name that authenticator apps show.
const ISSUER: &str = "Switchboard";
/// Nobody types a longer recovery code.
const MAX_TYPED_BYTES: usize = 64;

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The secret shared with a person's device. Its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret([u8; TOTP_BYTES]);

impl TotpSecret {
    pub const fn new(bytes: [u8; TOTP_BYTES]) -> Self {
        Self(bytes)
    }

    /// The stored form, before encryption.
    pub const fn as_bytes(&self) -> &[u8; TOTP_BYTES] {
        &self.0
    }

    /// The secret for typing it into a device, in groups of four characters.
    pub fn in_letters(&self) -> String {
        in_groups(&BASE32_NOPAD.encode(&self.0), " ")
    }

    /// The `otpauth` URL that a device reads as a QR code.
    pub fn address(&self, email: &Email) -> String {
        let label = utf8_percent_encode(email.as_str(), RESERVED);
        let secret = BASE32_NOPAD.encode(&self.0);
        format!("otpauth://totp/{ISSUER}:{label}?secret={secret}&issuer={ISSUER}")
    }

    /// The step of a code, unless this step or a later one was used before. The neighbouring steps are accepted as
    /// well: clocks differ, and people type slowly.
    pub fn find_step(&self, typed: &str, now: Timestamp, last_used: i64) -> Option<i64> {
        let typed: String = typed.chars().filter(|c| !c.is_whitespace()).collect();
        if typed.len() != DIGITS || !typed.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let typed: u32 = typed.parse().ok()?;
        let current = now.as_second().div_euclid(STEP_S);
        // Every step is checked, so that the time taken does not reveal the matching one.
        let mut found = None;
        for step in current - SKEW..=current + SKEW {
            if self.code_at(step) == typed && step > last_used {
                found = found.or(Some(step));
            }
        }
        found
    }

    pub fn code(&self, now: Timestamp) -> String {
        let step = now.as_second().div_euclid(STEP_S);
        format!("{:06}", self.code_at(step))
    }

    /// RFC 4226, section 5.3.
    fn code_at(&self, step: i64) -> u32 {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let mac = hmac::sign(&key, &step.to_be_bytes());
        let mac = mac.as_ref();
        let at = usize::from(mac[mac.len() - 1] & 0xf);
        let four = [mac[at] & 0x7f, mac[at + 1], mac[at + 2], mac[at + 3]];
        u32::from_be_bytes(four) % MODULUS
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret(…)")
    }
}

/// A code that replaces the device once. Its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl RecoveryCode {
    pub fn new(bytes: &[u8; RECOVERY_BYTES]) -> Self {
        Self(in_groups(&BASE32_NOPAD.encode(bytes).to_lowercase(), "-"))
    }

    /// The code in plain text, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The form that the database stores.
    pub fn hash(&self) -> TokenHash {
        Self::hash_typed(&self.0).expect("a code is one")
    }

    /// The hash of a typed code, in any spelling; `None` if it cannot be a code.
    pub fn hash_typed(typed: &str) -> Option<TokenHash> {
        if typed.len() > MAX_TYPED_BYTES {
            return None;
        }
        let letters: String = typed
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let is_code = letters.len() == RECOVERY_BYTES * 8 / 5;
        is_code.then(|| TokenHash::from_secret(&format!("recovery {letters}")))
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(…)")
    }
}

fn in_groups(letters: &str, between: &str) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let groups: Vec<String> = letters
        .chunks(4)
        .map(|four| four.iter().collect())
        .collect();
    groups.join(between)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The secret of the test vectors.
    const RFC: TotpSecret = TotpSecret::new(*b"12345678901234567890");

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("within range")
    }

    #[test]
    fn codes_match_the_standard() {
        // RFC 6238, appendix B, shortened to six digits.
        for (second, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(RFC.code(at(second)), code, "{second}");
        }
        // RFC 4226, appendix D.
        for (step, code) in [(0, 755_224), (1, 287_082), (5, 254_676), (9, 520_489)] {
            assert_eq!(RFC.code_at(step), code, "{step}");
        }
    }

    #[test]
    fn a_code_is_valid_once_within_one_step() {
        let now = 1_000_000_005;
        let step = now / 30;
        let code = |second: i64| RFC.code(at(second));
        for (case, typed, last_used, expected) in [
            ("now", code(now), 0, Some(step)),
            ("the step before", code(now - 30), 0, Some(step - 1)),
            ("the step after", code(now + 30), 0, Some(step + 1)),
            ("two before", code(now - 60), 0, None),
            ("two after", code(now + 60), 0, None),
            (
                "with spaces",
                format!(" {} {} ", &code(now)[..3], &code(now)[3..]),
                0,
                Some(step),
            ),
            ("used", code(now), step, None),
            ("one before one that was used", code(now - 30), step, None),
            (
                "after one that was used",
                code(now + 30),
                step,
                Some(step + 1),
            ),
            ("empty", String::new(), 0, None),
            ("short", code(now)[..5].to_owned(), 0, None),
            ("long", format!("{}0", code(now)), 0, None),
            ("signed", format!("+{}", &code(now)[1..]), 0, None),
            ("other digits", "١٢٣٤٥٦".to_owned(), 0, None),
        ] {
            let found = RFC.find_step(&typed, at(now), last_used);
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn a_secret_is_shown_as_devices_take_it() {
        assert_eq!(RFC.in_letters(), "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ");
        let email: Email = "ann+x@example.com".parse().expect("an address");
        assert_eq!(
            RFC.address(&email),
            "otpauth://totp/Switchboard:ann%2Bx%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Switchboard"
        );
    }

    #[test]
    fn a_recovery_code_is_recognised_in_any_spelling() {
        let code = RecoveryCode::new(b"0123456789");
        assert_eq!(code.reveal(), "gayt-emzu-gu3d-oobz");
        for (typed, is_it) in [
            ("gayt-emzu-gu3d-oobz", true),
            (" GAYTEMZU gu3d oobz ", true),
            ("gayt-emzu-gu3d-ooby", false),
            ("gayt-emzu-gu3d-oob", false),
            ("", false),
            ("123456", false),
        ] {
            assert_eq!(
                RecoveryCode::hash_typed(typed) == Some(code.hash()),
                is_it,
                "{typed:?}"
            );
        }
        assert_eq!(RecoveryCode::hash_typed(&"a ".repeat(1000)), None);
    }

    #[test]
    fn secrets_never_show_in_debug_output() {
        let shown = format!("{RFC:?} {:?}", RecoveryCode::new(b"0123456789"));
        assert_eq!(shown, "TotpSecret(…) RecoveryCode(…)");
    }

    proptest! {
        #[test]
        fn any_input_is_parsed_or_refused(typed in "\\PC{0,20}", second in 0_i64..4_000_000_000) {
            if let Some(step) = RFC.find_step(&typed, at(second), 0) {
                prop_assert!((step - second / 30).abs() <= 1);
            }
        }

        #[test]
        fn the_current_code_is_valid_exactly_once(bytes: [u8; TOTP_BYTES], second in 60_i64..4_000_000_000) {
            let secret = TotpSecret::new(bytes);
            let typed = secret.code(at(second));
            let step = secret.find_step(&typed, at(second), 0);
            prop_assert!(step.is_some());
            prop_assert_eq!(secret.find_step(&typed, at(second), second / 30 + 1), None);
        }
    }
}
