//! Which part a receipt belongs to: references in other forms, reused references, and the recipient.

use std::sync::Arc;

use domain::delivery::receipt_match::{NumberTail, normal_form};
use domain::delivery::{Receipt, SendResult, Settlement};
use domain::ports::{Matched, Settled, Store, WorkStore};
use domain::{MessageState, Msisdn, Outcome};
use tokio::task::JoinSet;

use super::sample::accept;
use super::steps::{
    ABSENT, claim, first_result, future, held, join, kind, past, receipt, report, result, send,
    settle, state, taken, unanswered,
};

on_every_store!(
    references_match_in_every_form,
    an_early_receipt_is_found_in_every_form,
    another_form_is_no_match_for_another_recipient,
    a_repetition_in_another_form_is_a_repetition,
    a_reused_reference_is_matched_by_recipient,
    an_early_receipt_for_a_used_reference_is_no_repetition,
    early_receipts_for_one_reference_are_matched_by_recipient,
    receipts_of_one_batch_find_their_own_parts,
    concurrent_receipts_and_answers_in_other_forms_are_always_matched,
    attempts_without_an_answer_are_counted,
    an_early_receipt_is_found_by_its_reference;
    on_both_stores:
    a_carrier_with_one_reference_for_all_does_no_harm,
    an_unmatched_receipt_is_listed_once,
);

fn number(id: u64) -> Msisdn {
    Msisdn::parse(&format!("+3712{id:07}")).expect("a number")
}

fn receipt_for(reference: &str, id: u64, outcome: Outcome) -> Receipt {
    Receipt {
        to: Some(NumberTail::from_number(&number(id))),
        ..receipt(&normal_form(reference), outcome)
    }
}

/// The carrier accepted a message with this reference.
fn taken_as(id: u64, reference: &str) -> Settlement {
    Settlement {
        to: number(id),
        ..first_result(id, taken(&[&normal_form(reference)]))
    }
}

async fn send_as<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: domain::NodeId,
    id: u64,
    reference: &str,
) -> Settled {
    accept(store, vec![held(id, node)]).await;
    let settled = settle(store, node, vec![taken_as(id, reference)]).await;
    settled.into_iter().next().expect("one")
}

async fn settle_receipt<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: domain::NodeId,
    receipt: Receipt,
) -> (u64, &'static str) {
    let matched = report(store, node, vec![receipt]).await;
    match &matched[0] {
        Matched::Ended(ended) => (ended.id.get(), "ended"),
        other => (0, kind(other)),
    }
}

const FORMS: [(&str, &str); 6] = [
    ("00000F4240", "1000000"),
    ("1000001", "000f4241"),
    ("0x00F4242", "1000002"),
    ("abcdef", "00ABCDEF"),
    ("0000123", "123"),
    ("7f3e-11", "7f3e-11"),
];

async fn references_match_in_every_form(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for (id, (answer, written)) in (1..).zip(FORMS) {
        assert_eq!(send_as(&store, node, id, answer).await, Settled::Stored);
        let one = receipt_for(written, id, Outcome::Delivered);
        assert_eq!(
            settle_receipt(&store, node, one).await,
            (id, "ended"),
            "{answer}"
        );
    }
}

async fn an_early_receipt_is_found_in_every_form(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for (id, (answer, written)) in (1..).zip(FORMS) {
        let early = receipt_for(written, id, ABSENT);
        assert_eq!(settle_receipt(&store, node, early.clone()).await.1, "kept");
        assert_eq!(settle_receipt(&store, node, early.clone()).await.1, "kept");
        let settled = send_as(&store, node, id, answer).await;
        assert!(
            matches!(settled, Settled::Ended(_)),
            "{answer}: {settled:?}"
        );
        assert_eq!(settle_receipt(&store, node, early).await.1, "repeated");
    }
}

async fn another_form_is_no_match_for_another_recipient(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send_as(&store, node, 1, "10").await;
    for written in ["16", "A"] {
        let other = receipt_for(written, 2, Outcome::Delivered);
        assert_eq!(
            settle_receipt(&store, node, other).await.1,
            "kept",
            "{written}"
        );
        let unknown = receipt(written, Outcome::Delivered);
        assert_eq!(
            settle_receipt(&store, node, unknown).await.1,
            "kept",
            "{written}"
        );
    }
    assert_eq!(state(&store, 1).await, MessageState::Sent);
    let own = receipt_for("16", 1, Outcome::Delivered);
    assert_eq!(settle_receipt(&store, node, own).await, (1, "ended"));
}

async fn a_repetition_in_another_form_is_a_repetition(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send_as(&store, node, 1, "1A2B").await;
    let one = receipt_for("6699", 1, Outcome::Delivered);
    assert_eq!(
        settle_receipt(&store, node, one.clone()).await,
        (1, "ended")
    );
    assert_eq!(settle_receipt(&store, node, one).await.1, "repeated");
}

async fn a_reused_reference_is_matched_by_recipient(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for id in 1..=3 {
        assert_eq!(send_as(&store, node, id, "a").await, Settled::Stored);
    }
    let one = |id| receipt_for("a", id, Outcome::Delivered);
    assert_eq!(settle_receipt(&store, node, one(2)).await, (2, "ended"));
    assert_eq!(settle_receipt(&store, node, one(2)).await.1, "repeated");
    assert_eq!(settle_receipt(&store, node, one(1)).await, (1, "ended"));
    assert_eq!(settle_receipt(&store, node, one(3)).await, (3, "ended"));
    // Of two parts to the same recipient, the newest open one is matched first.
    for id in [4, 5] {
        accept(&store, vec![held(id, node)]).await;
        let again = Settlement {
            to: number(4),
            ..taken_as(id, "b")
        };
        assert_eq!(settle(&store, node, vec![again]).await, [Settled::Stored]);
    }
    let one = || receipt_for("b", 4, Outcome::Delivered);
    assert_eq!(settle_receipt(&store, node, one()).await, (5, "ended"));
    assert_eq!(settle_receipt(&store, node, one()).await, (4, "ended"));
    assert_eq!(settle_receipt(&store, node, one()).await.1, "repeated");
}

async fn an_early_receipt_for_a_used_reference_is_no_repetition(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send_as(&store, node, 1, "a").await;
    let first = receipt_for("a", 1, Outcome::Delivered);
    assert_eq!(settle_receipt(&store, node, first).await, (1, "ended"));
    send_as(&store, node, 2, "b").await;
    for (id, reference) in [(3, "a"), (4, "b")] {
        let early = receipt_for(reference, id, ABSENT);
        assert_eq!(settle_receipt(&store, node, early).await.1, "kept");
        let settled = send_as(&store, node, id, reference).await;
        assert!(matches!(settled, Settled::Ended(_)), "{id}: {settled:?}");
    }
    let second = receipt_for("b", 2, Outcome::Delivered);
    assert_eq!(
        settle_receipt(&store, node, second).await,
        (2, "ended"),
        "still open"
    );
}

async fn early_receipts_for_one_reference_are_matched_by_recipient(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for id in 1..=3 {
        let early = receipt_for("a", id, ABSENT);
        assert_eq!(settle_receipt(&store, node, early).await.1, "kept");
    }
    for id in [2, 3, 1] {
        let settled = send_as(&store, node, id, "a").await;
        assert!(matches!(settled, Settled::Ended(_)), "{id}: {settled:?}");
    }
}

async fn a_carrier_with_one_reference_for_all_does_no_harm(store: Arc<dyn Store>) {
    const MESSAGES: u64 = 80;
    let node = join(&store).await;
    let batch = (1..=MESSAGES).map(|id| held(id, node));
    accept(&store, batch.collect()).await;
    let batch = (1..=MESSAGES).map(|id| taken_as(id, "0")).collect();
    let settled = settle(&store, node, batch).await;
    assert!(
        settled.iter().all(|one| *one == Settled::Stored),
        "{settled:?}"
    );
    let one = |id| receipt_for("0", id, Outcome::Delivered);
    assert_eq!(settle_receipt(&store, node, one(MESSAGES)).await.1, "ended");
    assert_eq!(
        settle_receipt(&store, node, one(MESSAGES - 20)).await.1,
        "ended"
    );
    assert_eq!(
        settle_receipt(&store, node, one(1)).await.1,
        "kept",
        "only the newest parts are searched"
    );
}

async fn receipts_of_one_batch_find_their_own_parts(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for (id, reference) in [(1, "a"), (2, "a"), (3, "10"), (4, "16")] {
        send_as(&store, node, id, reference).await;
    }
    let batch = vec![
        receipt_for("a", 1, ABSENT),
        receipt_for("a", 2, Outcome::Delivered),
        receipt("A", Outcome::Delivered),
        receipt_for("A", 3, Outcome::Delivered),
        receipt_for("10", 4, ABSENT),
        receipt_for("a", 1, ABSENT),
    ];
    let matched = report(&store, node, batch).await;
    let kinds: Vec<_> = matched.iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["ended", "ended", "repeated", "ended", "ended", "repeated"]
    );
}

pub(super) async fn concurrent_receipts_and_answers_in_other_forms_are_always_matched(
    store: Arc<dyn WorkStore>,
) {
    const MESSAGES: u64 = 60;
    let node = join(&store).await;
    let batch = (1..=MESSAGES).map(|id| held(id, node));
    accept(&store, batch.collect()).await;
    let mut tasks = JoinSet::new();
    for id in 1..=MESSAGES {
        // Every third reference is used for two recipients.
        let name = 1_000_000 + id - u64::from(id % 3 == 0);
        let (answering, reporting) = (Arc::clone(&store), Arc::clone(&store));
        let answer = taken_as(id, &format!("{name:X}"));
        let one = receipt_for(&name.to_string(), id, Outcome::Delivered);
        tasks.spawn(async move {
            let settled = settle(&answering, node, vec![answer]).await;
            matches!(settled[..], [Settled::Ended(_)])
        });
        tasks.spawn(async move {
            let matched = report(&reporting, node, vec![one]).await;
            matches!(matched[..], [Matched::Ended(_)])
        });
    }
    let ended = tasks.join_all().await.into_iter().filter(|ended| *ended);
    assert_eq!(ended.count() as u64, MESSAGES, "each ends exactly once");
}

async fn an_unmatched_receipt_is_listed_once(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let list = async || {
        let unmatched = store.list_unmatched(10).await.expect("answers");
        let references = unmatched.into_iter().map(|receipt| receipt.reference);
        references.collect::<Vec<_>>()
    };
    for (id, (answer, written)) in (1..).zip(FORMS) {
        let early = receipt_for(written, id, ABSENT);
        let reference = early.of.reference.clone();
        report(&store, node, vec![early.clone(), early.clone()]).await;
        assert_eq!(list().await, [reference], "{answer}");
        send_as(&store, node, id, answer).await;
        assert_eq!(list().await, [""; 0], "{answer}: it is matched");
        report(&store, node, vec![early]).await;
        assert_eq!(list().await, [""; 0], "{answer}: a repetition");
    }
}

async fn attempts_without_an_answer_are_counted(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    send(&store, node, 1, &["a"]).await;
    accept(&store, vec![held(2, node)]).await;
    let unknown = first_result(2, unanswered(past(1)));
    assert_eq!(settle(&store, node, vec![unknown]).await, [Settled::Stored]);
    for attempts in 1..=2 {
        let claimed = claim(&store, node).await;
        assert_eq!((claimed.len(), claimed[0].unknown_tries), (1, attempts));
        assert_eq!(claimed[0].unanswered_by.as_deref(), Some("alpha"));
        let unknown = unanswered(past(1));
        settle(&store, node, vec![result(&claimed[0], unknown)]).await;
    }
    let claimed = claim(&store, node).await;
    let later = result(&claimed[0], SendResult::Later(future(1)));
    assert_eq!(settle(&store, node, vec![later]).await, [Settled::Stored]);
}

async fn an_early_receipt_is_found_by_its_reference(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let early = receipt("early", ABSENT);
    let (of, mut other) = (early.of.clone(), early.of.clone());
    other.carrier.push('x');
    let found = async |of| store.has_early_receipt(of).await.expect("answers");
    assert!(!found(&of).await);
    assert_eq!(report(&store, node, vec![early]).await, [Matched::Kept]);
    assert!(found(&of).await && !found(&other).await);
    let answer = first_result(1, taken(&["early"]));
    settle(&store, node, vec![answer]).await;
    assert!(!found(&of).await, "its part is known");
}
