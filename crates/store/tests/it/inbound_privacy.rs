//! Forgetting texts from handsets, and erasing a number from inboxes.

use std::sync::Arc;

use domain::delivery::CallbackNext;
use domain::inbound::message::InboundMessage;
use domain::ports::{CallbackFilter, Delivered, Store, SubjectMessage};
use domain::{AccountId, CallbackUrl, Msisdn, NodeId, Timestamp};
use jiff::SignedDuration;

use super::inbound::{copy, deliver, deliver_parts, number, part, sample};
use super::sample::{create_account, message};
use super::steps::{attempted, claim_callbacks, join, replay_all, settle_callback};

on_both_stores!(
    old_texts_are_forgotten_with_those_of_their_callbacks,
    a_number_is_erased_from_inboxes_and_callbacks,
    a_number_that_was_written_to_is_erased,
    waiting_parts_of_a_number_are_erased,
);

/// The sender of the samples.
const PERSON: &str = "+37120000001";

fn person() -> Msisdn {
    Msisdn::parse(PERSON).expect("a number")
}

async fn deliver_messages(store: &Arc<dyn Store>, node: NodeId, messages: Vec<InboundMessage>) {
    let batch = (0..).zip(messages).map(|(n, message)| {
        let mut new = sample(message.id.get(), message.account);
        new.message = message;
        (copy(1, n, 1), Delivered::Message(Box::new(new)))
    });
    deliver(store, node, batch.collect()).await;
}

async fn find(store: &Arc<dyn Store>, id: u64) -> InboundMessage {
    let found = store.find_inbound(None, message(id)).await;
    found.expect("answers").expect("it is there")
}

/// Delivers the callback that waits, and returns its payload.
async fn receive(store: &Arc<dyn Store>, node: NodeId) -> String {
    let callback = claim_callbacks(store, node).await.remove(0);
    let received = attempted(&callback, CallbackNext::Done, 3);
    assert!(settle_callback(store, node, received).await);
    callback.payload
}

async fn replay(store: &Arc<dyn Store>) {
    let every = CallbackFilter {
        with_done: true,
        ..CallbackFilter::default()
    };
    replay_all(store, &every).await.expect("answers");
}

fn received(id: u64, account: Option<AccountId>, received_at: Timestamp) -> InboundMessage {
    InboundMessage {
        received_at,
        ..sample(id, account).message
    }
}

async fn old_texts_are_forgotten_with_those_of_their_callbacks(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let node = join(&store).await;
    let long_ago = Timestamp::from_second(1_700_000_000).expect("a time");
    let recent = Timestamp::from_second(4_000_000_000).expect("a time");
    let messages = vec![
        received(11, Some(acme), long_ago),
        received(12, Some(acme), long_ago),
        received(13, None, long_ago),
        received(14, None, recent),
    ];
    deliver_messages(&store, node, messages.clone()).await;
    let callbacks = claim_callbacks(&store, node).await;
    let about_12 = callbacks.iter().find(|it| it.message == Some(message(12)));
    let done = attempted(about_12.expect("a callback"), CallbackNext::Done, 3);
    assert!(settle_callback(&store, node, done).await);
    let age = SignedDuration::from_hours(1);
    let mut steps = 0;
    while store.forget_inbound_texts(age, 2).await.expect("answers") {
        steps += 1;
        assert!(steps < 10);
    }
    for (case, id, is_forgotten) in [
        ("its callback waits", 11, false),
        ("its callback was received", 12, true),
        ("it has no callback", 13, true),
        ("it is not old", 14, false),
    ] {
        let text = find(&store, id).await.text;
        assert_eq!(text.is_empty(), is_forgotten, "{case}");
    }
    let left = find(&store, 12).await;
    let expected = InboundMessage {
        text: String::new(),
        ..messages[1].clone()
    };
    assert_eq!(left, expected, "everything else stays");
    let detail = store.find_inbound_detail(message(12)).await;
    let detail = detail.expect("answers").expect("it is there");
    assert_eq!(detail.callbacks[0].0.payload, left.payload());
}

async fn found(store: &Arc<dyn Store>) -> Vec<(u64, bool)> {
    let page = store.list_inbound_subject(&person(), None).await;
    let page = page.expect("answers");
    assert_eq!(page.next, None);
    let short = |message: &SubjectMessage| (message.id.get(), message.is_over);
    page.messages.iter().map(short).collect()
}

async fn a_number_is_erased_from_inboxes_and_callbacks(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let node = join(&store).await;
    let other = InboundMessage {
        from: "+37120000002".to_owned(),
        ..sample(13, None).message
    };
    let messages = vec![
        sample(11, Some(acme)).message,
        sample(12, None).message,
        other,
    ];
    deliver_messages(&store, node, messages.clone()).await;
    assert_eq!(found(&store).await, [(11, false), (12, true)]);
    let detail = store.find_inbound_detail(message(11)).await;
    let detail = detail.expect("answers").expect("it is there");
    assert_eq!(detail.message, messages[0]);
    assert_eq!(detail.callbacks[0].0.payload, messages[0].payload());

    let ids = [11, 12, 13].map(message);
    let erase = async || {
        let erased = store.erase_inbound_subject(&person(), &ids).await;
        erased.expect("answers")
    };
    assert_eq!(erase().await, 1, "the callback of the first waits");
    assert_eq!(receive(&store, node).await, messages[0].payload());
    assert_eq!(erase().await, 1);
    assert_eq!(erase().await, 0, "it is erased once");
    assert_eq!(found(&store).await, []);
    assert_eq!(find(&store, 13).await, messages[2]);

    let left = find(&store, 11).await;
    let expected = InboundMessage {
        from: String::new(),
        text: String::new(),
        udh: None,
        keyword: None,
        ..messages[0].clone()
    };
    assert_eq!(left, expected);
    let detail = store.find_inbound_detail(message(11)).await;
    let detail = detail.expect("answers").expect("it is there");
    let (callback, attempts) = &detail.callbacks[0];
    assert_eq!(callback.payload, left.payload());
    assert_eq!(attempts[0].body, b"");
    replay(&store).await;
    assert_eq!(
        receive(&store, node).await,
        left.payload(),
        "a replay does not bring it back"
    );
}

async fn a_number_that_was_written_to_is_erased(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let node = join(&store).await;
    let mut new = sample(11, Some(acme));
    new.message.to = number(PERSON);
    "Acme".clone_into(&mut new.message.from);
    new.url = CallbackUrl::parse("https://example.com/?number=37120000001").ok();
    let batch = vec![(copy(1, 0, 1), Delivered::Message(Box::new(new)))];
    deliver(&store, node, batch).await;
    receive(&store, node).await;
    let erased = store.erase_inbound_subject(&person(), &[message(11)]).await;
    assert_eq!(erased.expect("answers"), 1);
    let detail = store.find_inbound_detail(message(11)).await;
    let detail = detail.expect("answers").expect("it is there");
    let shown = (detail.message.from.as_str(), detail.message.to.to_string());
    assert_eq!(shown, ("Acme", String::new()));
    assert_eq!(detail.callbacks[0].0.url, "");
}

async fn waiting_parts_of_a_number_are_erased(store: Arc<dyn Store>) {
    let mut other = part(8, 2, 1, 0);
    "+37120000002".clone_into(&mut other.from);
    let parts = [part(7, 3, 1, 0), part(7, 3, 2, 0), part(9, 2, 1, 0), other];
    deliver_parts(&store, &parts, 0).await;
    let waiting = async |limit| {
        let sets = store.list_subject_parts(&person(), limit).await;
        let sets = sets.expect("answers");
        let mut counts: Vec<usize> = sets.iter().map(|set| set.parts.len()).collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(waiting(10).await, [1, 2]);
    assert_eq!(waiting(1).await.len(), 1);
    store.erase_subject_parts(&person()).await.expect("erased");
    assert_eq!(waiting(10).await, [0; 0]);
    let far = Timestamp::from_second(4_000_000_000).expect("a time");
    let left = store.list_part_sets(far, 10).await.expect("answers");
    assert_eq!(left.len(), 1, "another number's stay");
}
