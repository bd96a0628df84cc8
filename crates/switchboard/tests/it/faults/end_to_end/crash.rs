//! The process is killed repeatedly under load, and no message is lost.

use std::thread;
use std::time::Duration;

use testkit::Backend;

use super::{DuplicateLimits, EndToEndTest, WINDOW};
use crate::faults::rng::Rng;

const KILLS: usize = 50;
const CALLERS: usize = 32;
/// The longest time between a start and the next kill.
const MAX_UPTIME: Duration = Duration::from_millis(800);

crate::rest::on_both_backends!(every_answered_message_ends_once_and_is_reported);

fn every_answered_message_ends_once_and_is_reported(backend: Backend) {
    let mut rng = Rng::seeded();
    let mut test = EndToEndTest::start(backend);
    for _ in 0..KILLS {
        let callers = test.callers(CALLERS);
        thread::sleep(rng.duration_below(MAX_UPTIME)); // tidy: the moment of the crash is meant to be random
        test.crash(callers);
    }
    test.check(DuplicateLimits {
        after_each_crash: WINDOW,
        otherwise: 0,
    });
}
