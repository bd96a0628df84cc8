//! Lookups, and messages that were seen.

use std::sync::Arc;

use domain::delivery::{CallbackKind, CarrierRef, SendResult};
use domain::message::lookup::{LookupRecord, Subscriber};
use domain::message::text::{Coding, Shape};
use domain::message::{Holder, MessageState, Submission};
use domain::ports::{Accepted, Settled, Store};
use domain::{Channel, Code, Network, Outcome};

use super::money::{assert_balanced, balance, priced};
use super::sample::{EVERYTHING, accept, account, create_account, message, scheduled};
use super::steps::{
    ABSENT, claim, claim_callbacks, deliver, first_result, held, join, past, receipt, report, send,
    settle, taken,
};

on_both_stores!(
    a_lookup_is_answered_and_read_back,
    a_lookup_without_an_answer_is_refunded,
    the_scheduled_list_shows_only_sms,
    a_delivered_message_is_seen_once,
    an_undelivered_message_is_not_seen,
);

/// A lookup that the node holds.
pub(crate) fn lookup(id: u64, node: domain::NodeId) -> Submission {
    Submission {
        channel: Channel::Hlr,
        from: None,
        text: String::new(),
        shape: Shape {
            coding: Coding::Gsm7,
            parts: 1,
        },
        ..held(id, node)
    }
}

fn answered(id: u64, subscriber: &Subscriber) -> SendResult {
    SendResult::Answered {
        carrier: Some("alpha".to_owned()),
        outcome: subscriber.outcome(),
        report: subscriber.payload(message(id)),
    }
}

async fn a_lookup_is_answered_and_read_back(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let waiting = Submission {
        holder: Holder::Nobody,
        ..lookup(1, node)
    };
    assert_eq!(accept(&store, vec![waiting]).await, [Accepted::Stored]);
    let find = |owner, id| {
        let store = store.clone();
        async move {
            store
                .find_lookup(account(owner), message(id))
                .await
                .expect("answers")
        }
    };
    let pending = LookupRecord {
        id: message(1),
        state: MessageState::Queued,
        report: None,
    };
    assert_eq!(find(1, 1).await, Some(pending));
    assert_eq!(find(2, 1).await, None, "another account's");
    let queued = claim(&store, node).await.remove(0);
    assert_eq!((queued.channel, &queued.from), (Channel::Hlr, &None));
    let found = Subscriber {
        network: Network::new("247", "01"),
        ..Subscriber::unknown(Code::FINE)
    };
    let result = super::steps::result(&queued, answered(1, &found));
    let Settled::Ended(ended) = settle(&store, node, vec![result]).await.remove(0) else {
        panic!("it did not end");
    };
    let callback = ended.callback.expect("it is held");
    assert_eq!(
        (callback.kind, &callback.payload),
        (CallbackKind::Lookup, &found.payload(message(1)))
    );
    let record = find(1, 1).await.expect("it is there");
    assert_eq!(record.report, Some(found.payload(message(1))));
    send(&store, node, 9, &["nine"]).await;
    assert_eq!(find(1, 9).await, None, "a message is no lookup");
}

async fn a_lookup_without_an_answer_is_refunded(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let start = balance(&store, acme).await;
    let mut spent = 0;
    for (id, code, is_refunded) in [
        (1, 0, false),
        (2, 43, false),
        (3, 40, false),
        (4, 50, true),
        (5, 52, true),
        (6, 30, true),
    ] {
        accept(&store, vec![priced(lookup(id, node), acme, 500)]).await;
        let subscriber = Subscriber::unknown(Code::new(code).expect("a code"));
        settle(
            &store,
            node,
            vec![first_result(id, answered(id, &subscriber))],
        )
        .await;
        spent += if is_refunded { 0 } else { 500 };
        assert_eq!(balance(&store, acme).await, start - spent, "{code}");
    }
    // A message with the same code was handled by the network, so it is not refunded.
    accept(&store, vec![priced(held(9, node), acme, 500)]).await;
    let timeout = Outcome::Failed(Code::HLR_TIMEOUT);
    settle(&store, node, vec![first_result(9, taken(&["nine"]))]).await;
    report(&store, node, vec![receipt("nine", timeout)]).await;
    assert_eq!(balance(&store, acme).await, start - spent - 500);
    assert_balanced(&store).await;
}

async fn the_scheduled_list_shows_only_sms(store: Arc<dyn Store>) {
    let viber = Submission {
        channel: Channel::Viber,
        ..scheduled(2, 500)
    };
    accept(&store, vec![scheduled(1, 400), viber]).await;
    let listed = store
        .list_scheduled(account(1), EVERYTHING)
        .await
        .expect("answers");
    assert_eq!(
        listed.iter().map(|record| record.id).collect::<Vec<_>>(),
        [message(1)]
    );
    let found = store
        .find_message(account(1), message(2))
        .await
        .expect("answers");
    assert_eq!(found.map(|record| record.channel), Some(Channel::Viber));
}

fn carrier_ref(reference: &str) -> CarrierRef {
    CarrierRef {
        carrier: "alpha".to_owned(),
        reference: reference.to_owned(),
    }
}

async fn a_delivered_message_is_seen_once(store: Arc<dyn Store>) {
    let node = join(&store).await;
    deliver(&store, node, 1).await;
    assert!(
        store
            .mark_seen(&carrier_ref("ref-1"), past(9))
            .await
            .expect("answers")
    );
    assert!(
        !store
            .mark_seen(&carrier_ref("ref-1"), past(9))
            .await
            .expect("answers"),
        "once"
    );
    let claimed = claim_callbacks(&store, node).await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!(claimed[0].payload, r#"{"id":"1","status":3,"error":0}"#);
}

async fn an_undelivered_message_is_not_seen(store: Arc<dyn Store>) {
    let node = join(&store).await;
    send(&store, node, 1, &["out"]).await;
    send(&store, node, 2, &["lost"]).await;
    report(&store, node, vec![receipt("lost", ABSENT)]).await;
    for reference in ["out", "lost", "unknown"] {
        assert!(
            !store
                .mark_seen(&carrier_ref(reference), past(9))
                .await
                .expect("answers"),
            "{reference}"
        );
    }
    assert_eq!(claim_callbacks(&store, node).await, []);
}
