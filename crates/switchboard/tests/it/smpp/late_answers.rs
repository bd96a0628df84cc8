//! An SMSC that answers after the response timeout.

use std::time::Duration;

use testkit::smsc::{Action, IdFormat, Receipt, Smsc, Submit};

use super::bulk::{Tally, recipients, send_all, use_funded_account};
use super::{carrier, start};

crate::rest::on_both_backends!(
    late_answers_count_and_nothing_is_sent_twice,
    receipts_in_another_form_are_matched_without_configuration,
);

const MESSAGES: usize = 20;

fn delivered(submit: &Submit) -> Receipt {
    Receipt::delivered(submit.id().to_string())
}

/// Each message is answered two seconds after the timeout, and sent and reported once.
fn late_answers_count_and_nothing_is_sent_twice(backend: testkit::Backend) {
    let smsc = Smsc::builder()
        .on_submit(|submit| {
            let late = Action::Wait(Duration::from_secs(3));
            vec![late, Action::Answer, Action::Receipt(delivered(submit))]
        })
        .start();
    let alpha = carrier("alpha", smsc.addr(), "response_timeout_s = 1");
    let mut service = start(backend, alpha);
    use_funded_account(&mut service);
    let tally = Tally::start();
    let ids = send_all(&service, &tally, "Hello", &recipients(MESSAGES));
    tally.check_once(&service, ids);
    let log = smsc.log();
    assert_eq!((log.submit_count, log.binds.len()), (MESSAGES + 1, 1));
    service.check_health();
}

/// The SMSC answers with the ID `00000F4240`, and its receipts have the ID `1000000`.
fn receipts_in_another_form_are_matched_without_configuration(backend: testkit::Backend) {
    let smsc = Smsc::builder()
        .id_format(IdFormat::Hex)
        .on_submit(|submit| match submit.number % 2 {
            0 => vec![Action::Answer, Action::Receipt(delivered(submit))],
            // A receipt may come before the answer.
            _ => vec![Action::Receipt(delivered(submit)), Action::Answer],
        })
        .start();
    let mut service = start(backend, carrier("alpha", smsc.addr(), ""));
    use_funded_account(&mut service);
    let tally = Tally::start();
    let ids = send_all(&service, &tally, &"a".repeat(200), &recipients(MESSAGES));
    tally.check_once(&service, ids);
    service.check_health();
}
