//! How long to wait before the next attempt.

use jiff::SignedDuration;

/// The pauses between the attempts of a callback, in seconds; the last one repeats.
const CALLBACK_PAUSES_S: [i64; 9] = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600];
/// The pause before the second attempt to send a message, in seconds; it doubles with each attempt.
const FIRST_SEND_PAUSE_S: i64 = 2;
/// The longest pause between attempts to send a message, in seconds.
const LONGEST_SEND_PAUSE_S: i64 = 600;
/// Every pause varies by up to this percentage, so that what failed together is not repeated together.
const JITTER_PERCENT: i64 = 20;

/// The pause after the `tries`th attempt of a callback. `dice` is a random number that spreads it.
pub fn callback_pause(tries: u32, dice: u32) -> SignedDuration {
    let index = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let seconds = CALLBACK_PAUSES_S[index.min(CALLBACK_PAUSES_S.len() - 1)];
    spread(seconds, dice)
}

/// The pause after the `tries`th attempt to send a message.
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
    fn callbacks_follow_the_documented_schedule() {
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
