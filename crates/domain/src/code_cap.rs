//! How many confirmation codes a number and an account may get: sender PINs, which are free of charge, and the codes of
//! verifications.

use jiff::{SignedDuration, Timestamp};

/// The most codes for one number within an hour, over all accounts.
pub const NUMBER_HOUR: u32 = 5;
/// The most codes for one number within a day, over all accounts.
pub const NUMBER_DAY: u32 = 10;
/// The most codes of one account within a day, unless the operator sets another limit.
pub const ACCOUNT_DAY: u32 = 500;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// The longest period over which codes are counted.
pub const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Too many codes were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeCapReached {
    /// When the next code may be sent.
    pub until: Timestamp,
}

impl CodeCapReached {
    /// How many seconds a caller must wait, at least one.
    pub fn retry_after_s(self, now: Timestamp) -> u32 {
        let seconds = self.until.duration_since(now).as_secs();
        u32::try_from(seconds).unwrap_or(0) + 1
    }
}

/// Checks whether a number may get another code.
///
/// `sent` are the times of its latest codes, newest first: at least [`NUMBER_DAY`] of them, if there are that many.
pub fn check_number(sent: &[Timestamp], now: Timestamp) -> Result<(), CodeCapReached> {
    let limits = [(NUMBER_HOUR, HOUR), (NUMBER_DAY, DAY)];
    let until = limits.into_iter().filter_map(|(limit, window)| {
        let until = *sent.get(limit as usize - 1)? + window;
        (until > now).then_some(until)
    });
    until
        .max()
        .map_or(Ok(()), |until| Err(CodeCapReached { until }))
}

/// Checks whether an account may have another code sent. With a limit of `n` codes a day, `last` is the time of its
/// `n`th newest code.
pub fn check_account(last: Option<Timestamp>, now: Timestamp) -> Result<(), CodeCapReached> {
    match last.map(|last| last + DAY) {
        Some(until) if until > now => Err(CodeCapReached { until }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minute * 60).expect("in range")
    }

    #[test]
    fn a_number_gets_five_codes_in_an_hour_and_ten_in_a_day() {
        const DAY: i64 = 24 * 60;
        for (name, sent, now, until) in [
            ("none", vec![], 0, None),
            ("four", vec![3, 2, 1, 0], 4, None),
            ("five", vec![4, 3, 2, 1, 0], 5, Some(60)),
            ("the first is an hour ago", vec![4, 3, 2, 1, 0], 60, None),
            ("five of six", vec![30, 4, 3, 2, 1, 0], 40, Some(61)),
            (
                "ten",
                vec![309, 300, 240, 180, 120, 100, 90, 80, 70, 0],
                310,
                Some(DAY),
            ),
            (
                "ten, and five in an hour",
                vec![1439, 1438, 1437, 1436, 1435, 4, 3, 2, 1, 0],
                1439,
                Some(1435 + 60),
            ),
            (
                "the first is a day ago",
                vec![900, 800, 700, 600, 500, 400, 300, 200, 100, 0],
                DAY,
                None,
            ),
        ] {
            let sent: Vec<Timestamp> = sent.into_iter().map(at).collect();
            let expected = until.map_or(Ok(()), |until| Err(CodeCapReached { until: at(until) }));
            assert_eq!(check_number(&sent, at(now)), expected, "{name}");
        }
    }

    #[test]
    fn an_account_waits_until_its_first_code_is_a_day_old() {
        let until = at(24 * 60);
        assert_eq!(check_account(None, at(0)), Ok(()));
        assert_eq!(
            check_account(Some(at(0)), at(5)),
            Err(CodeCapReached { until })
        );
        assert_eq!(check_account(Some(at(0)), until), Ok(()));
    }
}
