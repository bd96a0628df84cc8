//! The send time and the expiry of a message.

use jiff::{SignedDuration, Timestamp};

use crate::quoted::Quoted;

/// A scheduled time up to this long ago counts as "now": clocks differ and requests take time.
pub const PAST_GRACE: SignedDuration = SignedDuration::from_secs(60);
pub const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The largest offset from UTC, in seconds. No time zone has a larger one.
pub const MAX_OFFSET_S: u32 = 14 * 3600;
/// The shortest validity period, in seconds.
pub const MIN_EXPIRE_S: u32 = 360;
/// The longest validity period, in seconds.
pub const MAX_EXPIRE_S: u32 = 432_000;
/// The validity period if the caller gives none, in seconds.
pub const DEFAULT_EXPIRE_S: u32 = 259_200;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Not a date and time with an offset.
    #[error("{} is not a date-time with offset; write it like 2030-01-31T09:30:00+02:00", Quoted(.0))]
    Malformed(String),
    /// An offset beyond [`MAX_OFFSET_S`].
    #[error("{} has an offset from UTC outside -14:00 to +14:00; give one within that range", Quoted(.0))]
    Offset(String),
    /// Longer ago than [`PAST_GRACE`].
    #[error("{} is in the past; give a time in the future", Quoted(.0))]
    Past(String),
    /// Beyond [`MAX_AHEAD`].
    #[error("{} is more than a year ahead; give an earlier time", Quoted(.0))]
    TooFar(String),
}

/// Parses a time like `2030-01-31T09:30:00+02:00`. `None` if it is just past, so that the message goes out now.
pub fn parse_scheduled(value: &str, now: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
    let at = parse_date_time(value)?;
    let ahead = at.duration_since(now);
    if ahead > MAX_AHEAD {
        Err(ScheduleError::TooFar(value.to_owned()))
    } else if ahead < -PAST_GRACE {
        Err(ScheduleError::Past(value.to_owned()))
    } else {
        Ok((ahead > SignedDuration::ZERO).then_some(at))
    }
}

/// Parses a time with seconds and an offset (RFC 3339). `jiff` alone would accept other ISO 8601 forms and offsets of more than a day.
pub fn parse_date_time(value: &str) -> Result<Timestamp, ScheduleError> {
    let malformed = || ScheduleError::Malformed(value.to_owned());
    if !has_shape(value.as_bytes()) {
        return Err(malformed());
    }
    if offset_s(&value[19..]).is_some_and(|offset_s| offset_s > MAX_OFFSET_S) {
        return Err(ScheduleError::Offset(value.to_owned()));
    }
    value.parse().map_err(|_| malformed())
}

fn has_shape(bytes: &[u8]) -> bool {
    bytes.len() >= "2030-01-31T09:30:00Z".len()
        && bytes.len() <= "2030-01-31T09:30:00.123456789+02:00".len()
        && matches!(bytes[10], b'T' | b't')
        && bytes[..10].iter().all(|b| b.is_ascii_digit() || *b == b'-')
        && bytes[11..19]
            .iter()
            .all(|b| b.is_ascii_digit() || *b == b':')
        && bytes[19..]
            .iter()
            .all(|b| b.is_ascii_digit() || b"Zz+-:.".contains(b))
}

/// The size of a numeric offset in seconds: 7200 for `.5+02:00`. `None` for `Z`.
fn offset_s(rest: &str) -> Option<u32> {
    let (_, offset) = rest.split_once(['+', '-'])?;
    let digits: Vec<u32> = offset.chars().filter_map(|c| c.to_digit(10)).collect();
    let units = digits.chunks(2).zip([3600, 60, 1]);
    let seconds =
        units.map(|(pair, unit)| pair.iter().fold(0, |sum, digit| sum * 10 + digit) * unit);
    Some(seconds.sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_scheduled_time_is_read_with_its_offset() {
        let now = at("2030-01-31T07:00:00Z");
        for (value, expected) in [
            ("2030-01-31T09:30:00+02:00", Some("2030-01-31T07:30:00Z")),
            ("2030-01-31T07:30:00Z", Some("2030-01-31T07:30:00Z")),
            ("2030-01-31T02:30:00-05:00", Some("2030-01-31T07:30:00Z")),
            ("2030-01-31T07:30:00.5Z", Some("2030-01-31T07:30:00.5Z")),
            ("2030-01-31T06:59:00Z", None),
            ("2030-01-31T07:00:00Z", None),
            ("2031-01-31T07:00:00Z", Some("2031-01-31T07:00:00Z")),
            ("2030-01-31T21:30:00+14:00", Some("2030-01-31T07:30:00Z")),
            ("2030-01-30T17:30:00-14:00", Some("2030-01-31T07:30:00Z")),
            ("2030-01-31T07:30:00-00:00", Some("2030-01-31T07:30:00Z")),
        ] {
            assert_eq!(parse_scheduled(value, now), Ok(expected.map(at)), "{value}");
        }
    }

    #[test]
    fn errors_say_why_a_time_is_refused() {
        let now = at("2030-01-31T07:00:00Z");
        for (value, reason) in [
            ("2030-01-31T06:58:59Z", "in the past"),
            ("2031-01-31T07:00:01Z", "more than a year ahead"),
            ("2030-01-31T09:30:00", "not a date-time with offset"),
            ("2030-01-31 09:30:00+02:00", "not a date-time"),
            ("2030-02-30T09:30:00Z", "not a date-time"),
            ("2030-01-31T25:30:00Z", "not a date-time"),
            ("2030-01-31T09:30Z", "not a date-time"),
            ("2030-01-31T09:30:00+02:00[Europe/Riga]", "not a date-time"),
            ("2030-01-31T21:31:00+14:01", "outside -14:00 to +14:00"),
            ("2030-01-30T17:29:00-14:01", "outside -14:00 to +14:00"),
            ("2030-02-01T08:30:00+25:00", "outside -14:00 to +14:00"),
            ("2030-02-01T08:30:00-25:00", "outside -14:00 to +14:00"),
            ("2030-02-01T08:30:00.5+25:00", "outside -14:00 to +14:00"),
            ("2030-02-01T08:30:00+14:00:01", "outside -14:00 to +14:00"),
            ("2030-02-01T08:30:00+99:99", "outside -14:00 to +14:00"),
            ("2030-02-01T08:30:00+02:60", "not a date-time"),
            ("2030-02-01T08:30:00+", "not a date-time"),
            ("tomorrow", "not a date-time"),
            ("", "not a date-time"),
        ] {
            let error = parse_scheduled(value, now).expect_err(value).to_string();
            assert!(error.contains(reason), "{value}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(value in "\\PC{0,40}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[-+Z0-9:.]{0,8}") {
            let now = at("2030-01-31T07:00:00Z");
            if let Ok(Some(time)) = parse_scheduled(&value, now) {
                prop_assert!(time > now && time.duration_since(now) <= MAX_AHEAD);
            }
        }
    }
}
