//! The service is asked to end in the middle of traffic.

use std::collections::BTreeSet;

use testkit::Backend;
use testkit::node::{NodeSmsc, NodeSubmit};

use super::mass::{Tally, enrich, recipients, send_all};
use super::{carrier, start, wait_for_submits};

crate::rest::on_both_backends!(a_service_that_stops_in_order_sends_nothing_twice);

const MESSAGES: usize = 2000;
/// Each has two.
const PARTS: usize = 2 * MESSAGES;
/// The service is stopped when the SMSC has so many parts, and again when it has as many more.
const STEP: usize = 1001;

/// What the SMSC had is settled before the end, the rest goes after the next start.
fn a_service_that_stops_in_order_sends_nothing_twice(backend: Backend) {
    let smsc = NodeSmsc::start(&["--answer-after", "20"]);
    let mut service = start(
        backend,
        carrier("alpha", smsc.addr(), "binds = 2\nwindow = 50"),
    );
    enrich(&mut service);
    let tally = Tally::start();
    let ids = send_all(&service, &tally, &"a".repeat(200), &recipients(MESSAGES));
    for stop in 1..=2 {
        wait_for_submits(&smsc, stop * STEP);
        let status = service.server.terminate();
        assert!(status.success(), "{status}: {}", service.server.output());
        let taken = smsc.submits().len();
        assert!(taken < PARTS, "in the middle: {taken}");
        service.server.restart();
    }
    wait_for_submits(&smsc, PARTS);
    let submits = smsc.submits();
    let part = |submit: &NodeSubmit| (submit.to.clone(), submit.short_message.clone());
    let parts: BTreeSet<_> = submits.iter().map(part).collect();
    assert_eq!((parts.len(), submits.len()), (PARTS, PARTS));
    tally.check_once(&service, ids);
    service.check_health();
}
