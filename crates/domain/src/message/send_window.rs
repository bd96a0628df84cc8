//! The hours of the day in which messages are sent, in the recipient's time.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

/// From one time of the day to a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendWindow {
    from: Time,
    until: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadWindow {
    #[error("give both times of the send window as hours and minutes, such as 09:00 and 20:00")]
    Malformed,
    #[error("the send window must end later on the day than it begins")]
    Order,
}

impl SendWindow {
    /// Reads two times such as `09:00` and `20:00`; `None` if both are empty.
    pub fn parse(from: &str, until: &str) -> Result<Option<Self>, BadWindow> {
        if from.is_empty() && until.is_empty() {
            return Ok(None);
        }
        let time = |text: &str| Time::strptime("%H:%M", text).map_err(|_| BadWindow::Malformed);
        let window = Self {
            from: time(from)?,
            until: time(until)?,
        };
        if window.from < window.until {
            Ok(Some(window))
        } else {
            Err(BadWindow::Order)
        }
    }

    /// When the window opens next in a time zone; `None` if it is open.
    pub fn next_start(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = now.to_zoned(zone.clone());
        let time = local.time();
        if self.from <= time && time < self.until {
            return None;
        }
        let day = if time < self.from {
            local.date()
        } else {
            local.date().tomorrow().ok()?
        };
        let start = day.to_datetime(self.from).to_zoned(zone.clone()).ok()?;
        Some(start.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_two_times_in_order() {
        for (from, until, expected) in [
            ("", "", Ok(false)),
            ("09:00", "20:00", Ok(true)),
            ("09:00", "", Err(BadWindow::Malformed)),
            ("9 o'clock", "20:00", Err(BadWindow::Malformed)),
            ("20:00", "09:00", Err(BadWindow::Order)),
            ("09:00", "09:00", Err(BadWindow::Order)),
        ] {
            let read = SendWindow::parse(from, until);
            assert_eq!(
                read.map(|window| window.is_some()),
                expected,
                "{from} {until}"
            );
        }
    }

    #[test]
    fn messages_wait_for_the_window_in_the_time_zone() {
        let window = SendWindow::parse("09:00", "20:00").expect("a window");
        let window = window.expect("two times");
        let zone = TimeZone::posix("EET-2EEST,M3.5.0/3,M10.5.0/4").expect("a zone");
        for (now, expected) in [
            ("2026-01-15T07:00:00Z", None),
            ("2026-01-15T17:59:59Z", None),
            ("2026-01-15T06:59:59Z", Some("2026-01-15T07:00:00Z")),
            ("2026-01-15T18:00:00Z", Some("2026-01-16T07:00:00Z")),
            // The clocks change in between.
            ("2026-03-28T20:00:00Z", Some("2026-03-29T06:00:00Z")),
        ] {
            let start = window.next_start(now.parse().expect("a time"), &zone);
            let start = start.map(|at| at.to_string());
            assert_eq!(start.as_deref(), expected, "{now}");
        }
    }
}
