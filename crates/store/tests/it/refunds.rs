//! Refunds of messages that were not sent.

use std::sync::Arc;

use domain::billing::EntryKind;
use domain::delivery::SendResult;
use domain::message::Submission;
use domain::ports::{Cancel, Matched, Settled, Store};
use domain::{Code, Outcome};

use super::money::{START, assert_balanced, balance, entries, priced};
use super::sample::{accept, at, create_account, message, scheduled, submission};
use super::steps::{ABSENT, first_result, held, join, receipt, report, settle, taken};

on_both_stores!(
    a_message_that_no_network_took_is_refunded,
    parts_that_a_network_took_stay_charged,
    a_message_is_refunded_once,
    a_cancelled_message_is_refunded,
);

async fn a_message_that_no_network_took_is_refunded(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let failed = |number: u16| Outcome::Failed(Code::new(number).expect("a code"));
    let mut expected = START;
    // The outcome, whether it is refunded if no carrier accepted the message, and if one did.
    for (id, (outcome, refused, reported)) in (1..).step_by(2).zip([
        (Outcome::Delivered, false, false),
        (Outcome::Expired, false, false),
        (failed(2), true, true),
        (failed(1), true, false),
        (failed(15), true, false),
        (failed(17), true, false),
        (failed(20), true, true),
        (failed(31), true, true),
        (failed(43), true, false),
        (failed(53), true, true),
        (failed(61), true, true),
        (failed(70), true, false),
        (failed(74), true, true),
        (failed(91), true, true),
        (failed(999), true, false),
    ]) {
        let batch = [id, id + 1].map(|id| priced(held(id, node), acme, 1_000));
        accept(&store, batch.to_vec()).await;
        let over = first_result(id, SendResult::Over(outcome));
        let settled = settle(&store, node, vec![over]).await;
        assert!(matches!(settled[0], Settled::Ended(_)), "{outcome:?}");
        expected -= if refused { 1_000 } else { 2_000 };
        assert_eq!(
            balance(&store, acme).await,
            expected,
            "{outcome:?}, refused"
        );
        let name = (id + 1).to_string();
        settle(&store, node, vec![first_result(id + 1, taken(&[&name]))]).await;
        let matched = report(&store, node, vec![receipt(&name, outcome)]).await;
        assert!(matches!(matched[0], Matched::Ended(_)), "{outcome:?}");
        expected += if reported { 1_000 } else { 0 };
        assert_eq!(
            balance(&store, acme).await,
            expected,
            "{outcome:?}, by receipt"
        );
    }
    assert_balanced(&store).await;
}

async fn parts_that_a_network_took_stay_charged(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let mut expected = START;
    for (id, code, references) in [
        (1, 53, vec!["a"]),
        (2, 999, vec!["b", "c"]),
        (3, 53, vec![]),
    ] {
        let mut long = priced(held(id, node), acme, 3_000);
        long.shape.parts = 3;
        accept(&store, vec![long]).await;
        // A part may be reported before the answer is stored; the message still ends with the answer.
        let early = references
            .first()
            .map(|name| receipt(name, Outcome::Delivered));
        report(&store, node, early.into_iter().collect()).await;
        let partly = SendResult::PartlyTaken {
            carrier: "alpha".to_owned(),
            references: references.iter().map(|&name| name.to_owned()).collect(),
            outcome: Outcome::Failed(Code::new(code).expect("a code")),
        };
        let settled = settle(&store, node, vec![first_result(id, partly)]).await;
        assert!(matches!(settled[0], Settled::Ended(_)), "{settled:?}");
        expected -= 1_000 * i64::try_from(references.len()).expect("few");
        assert_eq!(balance(&store, acme).await, expected, "{code}");
        for name in references {
            let late = report(&store, node, vec![receipt(name, Outcome::Delivered)]).await;
            assert_eq!(late, [Matched::Repeated]);
        }
    }
    assert_eq!(balance(&store, acme).await, expected);
    assert_balanced(&store).await;
}

async fn a_message_is_refunded_once(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let route_down = Outcome::Failed(Code::new(30).expect("a code"));
    let split = Submission {
        shape: domain::message::text::Shape {
            parts: 2,
            ..submission(1, 1).shape
        },
        ..priced(held(1, node), acme, 3_000)
    };
    accept(&store, vec![split, priced(held(2, node), acme, 500)]).await;
    let batch = vec![
        first_result(1, taken(&["a", "b"])),
        first_result(2, taken(&["c"])),
    ];
    settle(&store, node, batch).await;
    assert_eq!(balance(&store, acme).await, START - 3_500);
    let receipts = vec![
        receipt("a", route_down),
        receipt("b", route_down),
        receipt("a", route_down),
        receipt("c", ABSENT),
    ];
    let matched = report(&store, node, receipts).await;
    assert!(matches!(matched[0], Matched::Ended(_)));
    report(
        &store,
        node,
        vec![receipt("a", route_down), receipt("c", route_down)],
    )
    .await;
    assert_eq!(
        balance(&store, acme).await,
        START - 500,
        "the first is refunded, the second is not"
    );
    assert_eq!(
        entries(&store, acme).await,
        [
            (EntryKind::Refund, 3_000, 1),
            (EntryKind::Charge, -3_500, 2),
            (EntryKind::Credit, START, 0)
        ],
    );
    assert_balanced(&store).await;
}

async fn a_cancelled_message_is_refunded(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    accept(&store, vec![priced(scheduled(1, 9_000), acme, 700)]).await;
    assert_eq!(balance(&store, acme).await, START - 700);
    let cancel = || store.cancel(acme, message(1), at(5));
    assert_eq!(cancel().await.expect("answers"), Cancel::Done);
    assert!(matches!(
        cancel().await.expect("answers"),
        Cancel::NotWaiting(_)
    ));
    assert_eq!(balance(&store, acme).await, START);
    assert_eq!(entries(&store, acme).await[0], (EntryKind::Refund, 700, 1));
    assert_balanced(&store).await;
}
