//! Times in `schedule_delivery_time` and `validity_period`, and those that we write.

use jiff::civil::{Date, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

/// The text is not a time of SMPP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadTime;

/// Reads `YYMMDDhhmmsstnnp`: an absolute time, or one relative to `now`. `None` if it is empty.
pub(crate) fn parse(octets: &[u8], now: Timestamp) -> Result<Option<Timestamp>, BadTime> {
    if octets.is_empty() {
        return Ok(None);
    }
    let (digits, kind) = match octets {
        [digits @ .., kind] if digits.len() == 15 && digits.iter().all(u8::is_ascii_digit) => {
            (digits, *kind)
        }
        _ => return Err(BadTime),
    };
    let pair = |at: usize| (digits[at] - b'0') * 10 + (digits[at + 1] - b'0');
    let fields = [0, 2, 4, 6, 8, 10].map(pair);
    let quarters = i32::from(pair(13));
    match kind {
        b'R' => relative(fields, now).map(Some),
        b'+' => absolute(fields, quarters).map(Some),
        b'-' => absolute(fields, -quarters).map(Some),
        _ => Err(BadTime),
    }
}

fn relative(fields: [u8; 6], now: Timestamp) -> Result<Timestamp, BadTime> {
    const SECONDS: [i64; 6] = [365 * 86_400, 30 * 86_400, 86_400, 3600, 60, 1];
    let seconds = fields.into_iter().zip(SECONDS);
    let seconds = seconds.map(|(count, unit)| i64::from(count) * unit).sum();
    let time = now.checked_add(SignedDuration::from_secs(seconds));
    time.map_err(|_| BadTime)
}

fn absolute(fields: [u8; 6], quarters: i32) -> Result<Timestamp, BadTime> {
    let [year, month, day, hour, minute, second] = fields.map(u8::cast_signed);
    let date = Date::new(2000 + i16::from(year), month, day).map_err(|_| BadTime)?;
    let time = Time::new(hour, minute, second, 0).map_err(|_| BadTime)?;
    let offset = Offset::from_seconds(quarters * 900).map_err(|_| BadTime)?;
    offset
        .to_timestamp(date.to_datetime(time))
        .map_err(|_| BadTime)
}

/// An absolute time in UTC, as answers to `query_sm` have it.
pub(crate) fn absolute_text(at: Timestamp) -> String {
    format!("{}000+", at.strftime("%y%m%d%H%M%S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_relative() {
        let now: Timestamp = "2030-01-31T07:00:00Z".parse().expect("a time");
        for (text, expected) in [
            ("", Ok(None)),
            ("300131093000008+", Ok(Some("2030-01-31T07:30:00Z"))),
            ("300131023000020-", Ok(Some("2030-01-31T07:30:00Z"))),
            ("300131073000500+", Ok(Some("2030-01-31T07:30:00Z"))),
            ("000001020304000R", Ok(Some("2030-02-01T09:03:04Z"))),
            ("300231093000000+", Err(BadTime)),
            ("300131093000000", Err(BadTime)),
            ("3001310930000 0+", Err(BadTime)),
            ("300131093000000Z", Err(BadTime)),
            ("30013109300000000+", Err(BadTime)),
        ] {
            let expected = expected.map(|time| time.map(|time| time.parse().expect("a time")));
            assert_eq!(parse(text.as_bytes(), now), expected, "{text:?}");
        }
        assert_eq!(
            parse(absolute_text(now).as_bytes(), now),
            Ok(Some(now)),
            "what we write can be read"
        );
    }
}
