//! Measures timeouts without the time in which nothing is read.

use std::time::Duration;

use tokio::time::Instant;

use super::outstanding::Sent;

/// Measures the time in which we read. An answer that waits in the socket because we are busy is not late.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    paused: Duration,
    paused_since: Option<Instant>,
}

impl Clock {
    pub(super) fn new(start: Instant) -> Self {
        Self {
            start,
            paused: Duration::ZERO,
            paused_since: None,
        }
    }

    pub(super) fn active(&self, now: Instant) -> Duration {
        let pausing = self.paused_since.map(|since| now - since);
        (now - self.start).saturating_sub(self.paused + pausing.unwrap_or_default())
    }

    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_since.get_or_insert(now);
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused_since.take() {
            self.paused += now - since;
        }
    }

    /// The time until a request is late. It is late after twice the limit in any case, so that hanging handlers cannot
    /// delay it.
    pub(super) fn left(&self, sent: Sent, now: Instant, limit: Duration) -> Duration {
        let active = limit.saturating_sub(self.active(now).saturating_sub(sent.active));
        let whole = limit.saturating_mul(2).saturating_sub(now - sent.at);
        active.min(whole)
    }
}

/// Adds a duration to a time, saturating in the far future.
pub(super) fn add_saturating(now: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_hours(365 * 24);
    now.checked_add(wait).unwrap_or(now + FAR)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Clock;
    use crate::session::outstanding::Sent;

    #[test]
    fn time_without_reading_does_not_count_up_to_a_limit() {
        let seconds = Duration::from_secs;
        let start = Instant::now();
        let mut clock = Clock::new(start);
        let sent = Sent {
            at: start,
            active: clock.active(start),
            buffer: 0,
        };
        let left = |clock: &Clock, after| clock.left(sent, start + seconds(after), seconds(10));
        assert_eq!(left(&clock, 4), seconds(6));
        clock.pause(start + seconds(4));
        assert_eq!(left(&clock, 9), seconds(6), "while nothing is read");
        clock.resume(start + seconds(9));
        assert_eq!(left(&clock, 9), seconds(6), "and after it");
        assert_eq!(left(&clock, 11), seconds(4));
        clock.pause(start + seconds(11));
        assert_eq!(left(&clock, 18), seconds(2), "at most twice the time");
        assert_eq!(left(&clock, 20), Duration::ZERO);
    }
}
