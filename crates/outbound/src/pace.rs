//! How fast a carrier may be given work.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Spreads work evenly over time, so that no second has more of it than agreed.
///
/// Whoever comes gets the next free moment, in the order of coming, and waits for it. Nothing is saved up: who sends one
/// at a time and is late for its moment has lost it, so it takes several at once to reach the full rate.
#[derive(Debug)]
pub(crate) struct Pace {
    interval: Duration,
    next: Mutex<Instant>,
}

impl Pace {
    /// So many in a second; at least one.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            interval: Duration::from_secs(1) / per_second.max(1),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Waits until `count` more may go. Who stops waiting has used up its place all the same.
    pub(crate) async fn take(&self, count: u32) {
        let moment = self.reserve(count, Instant::now());
        sleep_until(moment).await;
    }

    fn reserve(&self, count: u32, now: Instant) -> Instant {
        let mut next = self.next.lock().expect("no holder panics");
        let moment = (*next).max(now);
        *next = moment + self.interval * count;
        moment
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_agreed_is_kept() {
        let pace = Pace::new(100);
        let start = Instant::now();
        let mut gone = Vec::new();
        for _ in 0..301 {
            pace.take(1).await;
            gone.push(start.elapsed());
        }
        let last = gone[300];
        assert!((3000..3010).contains(&last.as_millis()), "{last:?}");
        for second in 0..3 {
            let second = Duration::from_secs(second);
            let within = second..second + Duration::from_secs(1);
            let count = gone.iter().filter(|at| within.contains(at)).count();
            assert_eq!(count, 100, "from {second:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_of_several_parts_takes_the_time_of_several() {
        let pace = Pace::new(10);
        let start = Instant::now();
        for (count, waited_ms) in [(5, 0), (1, 500), (2, 600), (1, 800)] {
            pace.take(count).await;
            let waited = start.elapsed().as_millis();
            assert!(waited.abs_diff(waited_ms) <= 1, "{waited} ms");
        }
    }

    proptest! {
        #[test]
        fn no_window_holds_more_than_its_share(
            per_second in 1_u32..5000,
            steps in prop::collection::vec((1_u32..4, 0_u64..400_000), 1..60),
        ) {
            let pace = Pace::new(per_second);
            let mut now = Instant::now();
            let mut gone: Vec<(Instant, u32)> = Vec::new();
            for (count, after_us) in steps {
                now += Duration::from_micros(after_us);
                gone.push((pace.reserve(count, now), count));
            }
            for (index, (from, _)) in gone.iter().enumerate() {
                let within = gone[index..].iter().take_while(|(at, _)| *at < *from + Duration::from_secs(1));
                let counts: Vec<u32> = within.map(|(_, count)| *count).collect();
                let last = *counts.last().expect("the first is within");
                let before_last: u32 = counts.iter().sum::<u32>() - last;
                prop_assert!(before_last <= per_second, "{} before the last", before_last);
            }
        }
    }
}
