//! How long to wait before the next try.

use jiff::SignedDuration;

/// The pauses between the tries of a callback, in seconds; the last one repeats.
const CALLBACK_PAUSES_S: [i64; 9] = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600];
/// The first pause before a message is tried again, in seconds; it doubles with each try.
const FIRST_SEND_PAUSE_S: i64 = 2;
/// The longest pause before a message is tried again, in seconds.
const LONGEST_SEND_PAUSE_S: i64 = 600;
/// Every pause is spread by up to this share, in percent, so that what failed together does not return together.
const JITTER_PERCENT: i64 = 20;

/// The pause before a callback is tried again, after it was tried `tries` times. `dice` spreads it: any number will do.
pub fn callback_pause(tries: u32, dice: u32) -> SignedDuration {
    let index = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let seconds = CALLBACK_PAUSES_S[index.min(CALLBACK_PAUSES_S.len() - 1)];
    spread(seconds, dice)
}

/// The pause before a message is tried again, after it was tried `tries` times.
pub fn send_pause(tries: u32, dice: u32) -> SignedDuration {
    let doublings = tries.saturating_sub(1).min(20);
    spread(
        (FIRST_SEND_PAUSE_S << doublings).min(LONGEST_SEND_PAUSE_S),
        dice,
    )
}

fn spread(seconds: i64, dice: u32) -> SignedDuration {
    let millis = seconds * 1000;
    let width = 2 * millis * JITTER_PERCENT / 100 + 1;
    let shift = i64::from(dice) % width - width / 2;
    SignedDuration::from_millis(millis + shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn callbacks_are_tried_on_the_promised_schedule() {
        for (tries, seconds) in [
            (1, 5),
            (2, 30),
            (3, 120),
            (5, 1800),
            (9, 21_600),
            (10, 21_600),
            (u32::MAX, 21_600),
        ] {
            let middle = u32::try_from(seconds * 1000 * JITTER_PERCENT / 100).expect("small");
            assert_eq!(
                callback_pause(tries, middle).as_secs(),
                seconds,
                "after {tries} tries"
            );
        }
    }

    proptest! {
        #[test]
        fn every_pause_stays_within_its_spread(tries in any::<u32>(), dice in any::<u32>()) {
            let pause = callback_pause(tries, dice).as_millis();
            prop_assert!((4_000..=25_920_000).contains(&pause), "{pause}");
            let pause = send_pause(tries, dice).as_millis();
            prop_assert!((1_600..=720_000).contains(&pause), "{pause}");
        }
    }
}
