//! Random numbers that can be repeated.

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;
use std::time::Duration;

/// Sets the seed, to repeat a run.
const SEED_VARIABLE: &str = "SWITCHBOARD_TEST_SEED";

/// Prints its seed, so that a failed run can be repeated.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn seeded() -> Self {
        let given = env::var(SEED_VARIABLE).ok();
        let given = given.map(|seed| seed.parse().expect("the seed is a whole number"));
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(()));
        println!("repeat these random numbers with {SEED_VARIABLE}={seed}");
        Self(seed)
    }

    /// From 0 up to, but not including, `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn duration_below(&mut self, limit: Duration) -> Duration {
        let limit_us = u64::try_from(limit.as_micros()).expect("a short time");
        Duration::from_micros(self.below(limit_us))
    }

    /// `SplitMix64`: tiny, and good enough to choose moments.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
