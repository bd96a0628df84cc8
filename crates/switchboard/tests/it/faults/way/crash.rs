//! The process is killed under load, again and again, and nothing is lost on the whole way.

use std::thread;
use std::time::Duration;

use testkit::Backend;

use super::{Bounds, WINDOW, Way};
use crate::faults::dice::Dice;

const KILLS: usize = 50;
const CALLERS: usize = 32;
/// A crash comes at most so long after the service is up.
const UP: Duration = Duration::from_millis(800);

crate::rest::on_both_backends!(whatever_was_answered_ends_once_and_is_reported);

fn whatever_was_answered_ends_once_and_is_reported(backend: Backend) {
    let mut dice = Dice::throw();
    let mut way = Way::start(backend);
    for _ in 0..KILLS {
        let crowd = way.crowd(CALLERS);
        thread::sleep(dice.moment(UP)); // tidy: the moment of the crash is meant to be random
        way.crash(crowd);
    }
    way.check(Bounds {
        after_each_crash: WINDOW,
        otherwise: 0,
    });
}
