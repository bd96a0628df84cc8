//! The service is stopped under load.

use std::collections::BTreeSet;

use testkit::Backend;
use testkit::nodejs_smsc::{NodeJsSmsc, NodeJsSubmit};

use super::bulk::{Tally, recipients, send_all, use_funded_account};
use super::{carrier, start, wait_for_submits};

crate::rest::on_both_backends!(a_graceful_stop_sends_nothing_twice);

const MESSAGES: usize = 2000;
/// Each message has two parts.
const PARTS: usize = 2 * MESSAGES;
/// The service is stopped each time the SMSC has got this many more parts.
const STEP: usize = 1001;

/// Parts that the SMSC got are settled before the process ends; the rest is sent after the next start.
fn a_graceful_stop_sends_nothing_twice(backend: Backend) {
    let smsc = NodeJsSmsc::start(&["--answer-after", "20"]);
    let mut service = start(
        backend,
        carrier("alpha", smsc.addr(), "binds = 2\nwindow = 50"),
    );
    use_funded_account(&mut service);
    let tally = Tally::start();
    let ids = send_all(&service, &tally, &"a".repeat(200), &recipients(MESSAGES));
    for stop in 1..=2 {
        wait_for_submits(&smsc, stop * STEP);
        let status = service.server.terminate();
        assert!(status.success(), "{status}: {}", service.server.output());
        let taken = smsc.submits().len();
        assert!(taken < PARTS, "all {taken} parts were sent before the stop");
        service.server.restart();
    }
    wait_for_submits(&smsc, PARTS);
    let submits = smsc.submits();
    let part = |submit: &NodeJsSubmit| (submit.to.clone(), submit.short_message.clone());
    let parts: BTreeSet<_> = submits.iter().map(part).collect();
    assert_eq!((parts.len(), submits.len()), (PARTS, PARTS));
    tally.check_once(&service, ids);
    service.check_health();
}
