//! When a message goes out and when it expires.

use jiff::{SignedDuration, Timestamp};

use crate::shown::Shown;

/// A scheduled time this far in the past is taken as "now": clocks differ and requests travel.
pub const PAST_GRACE: SignedDuration = SignedDuration::from_secs(60);
/// The furthest a message can be scheduled ahead.
pub const MAX_AHEAD: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The shortest validity, in seconds.
pub const MIN_EXPIRE_S: u32 = 360;
/// The longest validity, in seconds.
pub const MAX_EXPIRE_S: u32 = 432_000;
/// The validity of a message that does not ask for one, in seconds.
pub const DEFAULT_EXPIRE_S: u32 = 259_200;

/// Why a scheduled time is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Not a date and time with an offset.
    #[error("{} is not a date-time with offset; write it like 2030-01-31T09:30:00+02:00", Shown(.0))]
    Malformed(String),
    /// Longer ago than [`PAST_GRACE`].
    #[error("{} is in the past; give a time to come", Shown(.0))]
    Past(String),
    /// Beyond [`MAX_AHEAD`].
    #[error("{} is more than a year ahead; give an earlier time", Shown(.0))]
    TooFar(String),
}

/// Reads `2030-01-31T09:30:00+02:00`. The answer is `None` for a time so shortly past that the message goes now.
pub fn parse_scheduled(value: &str, now: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
    let at = parse_date_time(value).ok_or_else(|| ScheduleError::Malformed(value.to_owned()))?;
    let ahead = at.duration_since(now);
    if ahead > MAX_AHEAD {
        Err(ScheduleError::TooFar(value.to_owned()))
    } else if ahead < -PAST_GRACE {
        Err(ScheduleError::Past(value.to_owned()))
    } else {
        Ok((ahead > SignedDuration::ZERO).then_some(at))
    }
}

/// RFC 3339 with seconds and an offset. `jiff` alone would take other ISO 8601 forms too.
fn parse_date_time(value: &str) -> Option<Timestamp> {
    let bytes = value.as_bytes();
    let shaped = bytes.len() >= "2030-01-31T09:30:00Z".len()
        && bytes.len() <= "2030-01-31T09:30:00.123456789+02:00".len()
        && matches!(bytes[10], b'T' | b't')
        && bytes[..10].iter().all(|b| b.is_ascii_digit() || *b == b'-')
        && bytes[11..19]
            .iter()
            .all(|b| b.is_ascii_digit() || *b == b':')
        && bytes[19..]
            .iter()
            .all(|b| b.is_ascii_digit() || b"Zz+-:.".contains(b));
    if shaped { value.parse().ok() } else { None }
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
        ] {
            assert_eq!(parse_scheduled(value, now), Ok(expected.map(at)), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_scheduled_says_why() {
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
