//! Chance that can be repeated.

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;
use std::time::Duration;

/// A seed that is set here is used instead of a new one.
const SEED_VARIABLE: &str = "SWITCHBOARD_TEST_SEED";

/// Random numbers from a seed that is printed, so that a failure says how it came about.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn throw() -> Self {
        let given = env::var(SEED_VARIABLE).ok();
        let given = given.map(|seed| seed.parse().expect("the seed is a whole number"));
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(()));
        println!("chance is repeated with {SEED_VARIABLE}={seed}");
        Self(seed)
    }

    /// From 0 to just below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// From nothing to just below `limit`.
    pub(super) fn moment(&mut self, limit: Duration) -> Duration {
        let limit_us = u64::try_from(limit.as_micros()).expect("a short time");
        Duration::from_micros(self.below(limit_us))
    }

    /// The generator `SplitMix64`: tiny, and good enough to choose moments.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
