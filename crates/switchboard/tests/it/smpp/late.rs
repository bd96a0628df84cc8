//! An SMSC whose answers are later than the response timeout.

use std::time::Duration;

use testkit::smsc::{Act, Ids, Receipt, Smsc, Submit};

use super::mass::{Tally, enrich, recipients, send_all};
use super::{carrier, start};

crate::rest::on_both_backends!(
    late_answers_count_and_nothing_is_sent_twice,
    receipts_in_another_form_are_matched_without_configuration,
);

const MESSAGES: usize = 20;

fn delivered(submit: &Submit) -> Receipt {
    Receipt::delivered(submit.id().to_string())
}

/// Each is answered two seconds after the timeout, and each is sent and reported once.
fn late_answers_count_and_nothing_is_sent_twice(backend: testkit::Backend) {
    let smsc = Smsc::builder()
        .on_submit(|submit| {
            let late = Act::Wait(Duration::from_secs(3));
            vec![late, Act::Answer, Act::Receipt(delivered(submit))]
        })
        .start();
    let alpha = carrier("alpha", smsc.addr(), "response_timeout_s = 1");
    let mut service = start(backend, alpha);
    enrich(&mut service);
    let tally = Tally::start();
    let ids = send_all(&service, &tally, "Hello", &recipients(MESSAGES));
    tally.check_once(&service, ids);
    let seen = smsc.seen();
    assert_eq!((seen.taken, seen.binds.len()), (MESSAGES + 1, 1));
    service.check_health();
}

/// The SMSC answers `00000F4240` and reports on `1000000`.
fn receipts_in_another_form_are_matched_without_configuration(backend: testkit::Backend) {
    let smsc = Smsc::builder()
        .ids(Ids::Hex)
        .on_submit(|submit| match submit.number % 2 {
            0 => vec![Act::Answer, Act::Receipt(delivered(submit))],
            // A receipt may be faster than the answer.
            _ => vec![Act::Receipt(delivered(submit)), Act::Answer],
        })
        .start();
    let mut service = start(backend, carrier("alpha", smsc.addr(), ""));
    enrich(&mut service);
    let tally = Tally::start();
    let ids = send_all(&service, &tally, &"a".repeat(200), &recipients(MESSAGES));
    tally.check_once(&service, ids);
    service.check_health();
}
