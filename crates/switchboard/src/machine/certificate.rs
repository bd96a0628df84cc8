//! Reads when an X.509 certificate expires (RFC 5280, section 4.1).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
/// The version, which the first version of certificates does not have.
const VERSION: u8 = 0xa0;
/// A year of two digits.
const UTC_TIME: u8 = 0x17;
/// A year of four digits.
const GENERALIZED_TIME: u8 = 0x18;

/// When the first certificate of a PEM file expires; `None` if there is none that can be read.
pub(super) fn expires_at(pem: &[u8]) -> Option<Timestamp> {
    let certificate = CertificateDer::from_pem_slice(pem).ok()?;
    not_after(&certificate)
}

fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if let Some((_, rest)) = element(fields, VERSION) {
        fields = rest;
    }
    let (_, fields) = element(fields, INTEGER)?;
    let (_, fields) = element(fields, SEQUENCE)?;
    let (_issuer, fields) = element(fields, SEQUENCE)?;
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, after) = time(validity)?;
    time(after).map(|(time, _)| time)
}

/// Reads a time, and returns what follows it.
fn time(der: &[u8]) -> Option<(Timestamp, &[u8])> {
    if let Some((text, rest)) = element(der, UTC_TIME) {
        let text = std::str::from_utf8(text).ok()?;
        let year: u8 = text.get(..2)?.parse().ok()?;
        let century = if year < 50 { "20" } else { "19" };
        return Some((parse(&format!("{century}{text}"))?, rest));
    }
    let (text, rest) = element(der, GENERALIZED_TIME)?;
    Some((parse(std::str::from_utf8(text).ok()?)?, rest))
}

/// Parses `YYYYMMDDHHMMSSZ`.
fn parse(text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.len() == 14)?;
    let time = DateTime::strptime("%Y%m%d%H%M%S", digits).ok()?;
    let time = time.to_zoned(TimeZone::UTC).ok()?;
    Some(time.timestamp())
}

/// The content of an element with this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            let length = bytes
                .iter()
                .fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    (found == tag)
        .then(|| rest.split_at_checked(length))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).expect("short").to_be_bytes();
        let head = [tag, 0x82, length[0], length[1]];
        [&head, content].concat()
    }

    fn certificate(version: &[u8], after: &[u8]) -> Vec<u8> {
        let validity = [&wrap(UTC_TIME, b"260101000000Z"), after].concat();
        let fields = [
            version,
            &wrap(INTEGER, &[7]),
            &wrap(SEQUENCE, &[]),
            &wrap(SEQUENCE, &[0; 300]),
            &wrap(SEQUENCE, &validity),
        ];
        wrap(SEQUENCE, &wrap(SEQUENCE, &fields.concat()))
    }

    #[test]
    fn the_end_of_the_validity_is_read() {
        let version = wrap(VERSION, &wrap(INTEGER, &[2]));
        for (case, version, after, expected) in [
            (
                "two digits",
                &*version,
                wrap(UTC_TIME, b"270203040506Z"),
                "2027-02-03T04:05:06Z",
            ),
            (
                "the last century",
                &version,
                wrap(UTC_TIME, b"990203040506Z"),
                "1999-02-03T04:05:06Z",
            ),
            (
                "four digits",
                &version,
                wrap(GENERALIZED_TIME, b"20510203040506Z"),
                "2051-02-03T04:05:06Z",
            ),
            (
                "without a version",
                &[],
                wrap(UTC_TIME, b"270203040506Z"),
                "2027-02-03T04:05:06Z",
            ),
        ] {
            let found = not_after(&certificate(version, &after)).expect(case);
            assert_eq!(found.to_string(), expected, "{case}");
        }
    }

    #[test]
    fn something_else_has_no_expiry() {
        let whole = certificate(&[], &wrap(UTC_TIME, b"270203040506Z"));
        for length in 0..whole.len() {
            assert_eq!(not_after(&whole[..length]), None, "{length} bytes");
        }
        for after in [
            wrap(UTC_TIME, b"271303040506Z"),
            wrap(UTC_TIME, b"2"),
            wrap(INTEGER, &[1]),
        ] {
            assert_eq!(not_after(&certificate(&[], &after)), None);
        }
        assert_eq!(expires_at(b"no certificate"), None);
    }
}
