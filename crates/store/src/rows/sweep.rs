//! A sweep over a table that deletes old rows and leaves those that are still needed.

/// A sweep that left fewer rows than this restarts at once.
const ROWS_WITHOUT_PAUSE: u64 = 10_000;
/// The pause after a sweep for each row that it left: rows that stay for long are read at most a hundred times a second
/// on average, however many there are.
const PAUSE_PER_ROW_US: i64 = 10_000;

/// The position of a sweep in the order of IDs. The next step continues there, so that rows that stay are read once for
/// each sweep, not once for each step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// The last ID that was read.
    pub(crate) after: i64,
    kept: u64,
    pauses_until_us: i64,
}

impl Sweep {
    /// A sweep over the IDs after this one.
    pub(crate) fn from(after: i64) -> Self {
        Self {
            after,
            ..Self::default()
        }
    }

    pub(crate) fn is_paused(&self, now_us: i64) -> bool {
        self.pauses_until_us > now_us
    }

    /// Records a row that was read.
    pub(crate) fn pass(&mut self, id: i64, stays: bool) {
        self.after = id;
        self.kept += u64::from(stays);
    }

    /// How many rows it has left so far.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// How long it should pause at its end.
    pub(crate) fn pause_us(&self) -> i64 {
        if self.kept < ROWS_WITHOUT_PAUSE {
            return 0;
        }
        let kept = i64::try_from(self.kept).unwrap_or(i64::MAX);
        kept.saturating_mul(PAUSE_PER_ROW_US)
    }

    /// The next sweep over the same rows.
    pub(crate) fn next(&self, now_us: i64) -> Self {
        Self {
            pauses_until_us: now_us.saturating_add(self.pause_us()),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_left_many_rows_pauses() {
        for (kept, pause_us) in [
            (0, 0),
            (9_999, 0),
            (10_000, 100_000_000),
            (1_000_000, 10_000_000_000),
        ] {
            let mut sweep = Sweep::from(5);
            for id in 6..6 + kept {
                sweep.pass(id, true);
            }
            sweep.pass(99_999_999, false);
            assert_eq!((sweep.after, sweep.pause_us()), (99_999_999, pause_us));
            let next = sweep.next(1_000);
            assert_eq!((next.after, next.kept()), (0, 0));
            assert_eq!(next.is_paused(1_000), pause_us > 0);
            assert!(!next.is_paused(1_000 + pause_us));
        }
    }
}
