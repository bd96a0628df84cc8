//! A node is paused beyond its lease, and another node takes over its work.

use testkit::Backend;

use super::{DuplicateLimits, EndToEndTest, WINDOW, with_network};
use crate::faults::signal;
use crate::faults::test_service::builder;
use crate::faults::waiting::wait_until;

const CALLERS: usize = 16;
/// Messages that wait when the node is paused: far more than its window.
const BACKLOG: usize = 1000;

/// Each message ends once and correctly. At most a window of the messages that the paused node held is sent twice: when
/// it continues, it must not send messages that another node owns now.
#[test]
fn a_node_that_was_paused_too_long_does_no_harm() {
    let test = EndToEndTest::start(Backend::Postgres);
    let url = test
        .service
        .server
        .database_url()
        .expect("PostgreSQL")
        .to_owned();
    let other = with_network(builder(Backend::Sqlite), &test.folder)
        .env("SWITCHBOARD_DATABASE__URL", url)
        .start();
    let paused = test.service.server.pid();

    let callers = test.callers(CALLERS);
    test.wait_for_answered(BACKLOG);
    signal::send("STOP", paused);
    let others = test.callers_of(other.addr(), CALLERS);
    wait_until("the other node takes over", || {
        other.output().contains("took over")
    });
    test.wait_for_answered(200);
    signal::send("CONT", paused);
    wait_until("the paused node notices", || {
        test.service.server.output().contains("given up as dead")
    });
    test.wait_for_answered(200);
    callers.stop();
    others.stop();
    test.check(DuplicateLimits {
        after_each_crash: 0,
        otherwise: WINDOW,
    });
}
