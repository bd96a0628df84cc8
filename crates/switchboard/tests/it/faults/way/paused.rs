//! A node stands still for longer than it counts as alive, while another takes its work over.

use testkit::Backend;

use super::{Bounds, WINDOW, Way, with_network};
use crate::faults::signal;
use crate::faults::subject::builder;
use crate::faults::waiting::wait_until;

const CALLERS: usize = 16;
/// What waits when the node stops: far more than its window.
const BACKLOG: usize = 1000;

/// Each message ends once and as it must, and of all that the sleeper held at most its window is sent twice: when it
/// wakes, it must not go on with what is another's now.
#[test]
fn a_node_that_slept_too_long_does_no_harm() {
    let way = Way::start(Backend::Postgres);
    let url = way
        .subject
        .server
        .database_url()
        .expect("PostgreSQL")
        .to_owned();
    let other = with_network(builder(Backend::Sqlite), &way.folder)
        .env("SWITCHBOARD_DATABASE__URL", url)
        .start();
    let sleeper = way.subject.server.pid();

    let crowd = way.crowd(CALLERS);
    way.wait_for_answered(BACKLOG);
    signal::send("STOP", sleeper);
    let others = way.crowd_at(other.addr(), CALLERS);
    wait_until("the other takes over", || {
        other.output().contains("took over")
    });
    way.wait_for_answered(200);
    signal::send("CONT", sleeper);
    wait_until("the sleeper notices", || {
        way.subject.server.output().contains("given up as dead")
    });
    way.wait_for_answered(200);
    crowd.leave();
    others.leave();
    way.check(Bounds {
        after_each_crash: 0,
        otherwise: WINDOW,
    });
}
