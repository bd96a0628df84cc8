//! Random numbers that are the same for the same seed.

use std::time::Duration;

/// A xorshift generator: small, fast, and good enough to shuffle events.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        // Similar seeds must not give similar numbers.
        let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ (mixed >> 29) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 up to, but not including, `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }

    /// True with a probability of `share` / 1000.
    pub(super) fn per_mille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub(super) fn between(&mut self, min_ms: u64, max_ms: u64) -> Duration {
        Duration::from_millis(min_ms + self.below(max_ms - min_ms + 1))
    }
}
