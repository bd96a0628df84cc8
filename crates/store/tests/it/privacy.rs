//! Forgetting texts, and erasing a number.

use std::sync::Arc;

use domain::delivery::{CallbackNext, SendResult};
use domain::message::Submission;
use domain::ports::{Cursor, MessageFilter, Settled, Store, SubjectMessage};
use domain::{Msisdn, NodeId, Originator, Outcome};
use jiff::SignedDuration;

use super::lookups::lookup;
use super::money::{balance, priced};
use super::sample::{accept, account, create_account, message, scheduled};
use super::steps::{
    ABSENT, attempted, deliver, first_result, held, join, settle, settle_callback, url,
};

on_both_stores!(
    texts_of_ended_messages_are_forgotten,
    a_number_is_found_as_recipient_and_as_sender,
    a_number_is_erased_from_ended_messages,
    a_lookup_loses_its_result,
);

/// An age by which every ended message of these tests is old.
const ANY_AGE: SignedDuration = SignedDuration::from_secs(0);

fn number(digits: &str) -> Msisdn {
    Msisdn::parse(digits).expect("a number")
}

async fn text(store: &Arc<dyn Store>, id: u64) -> String {
    let detail = store.find_message_detail(None, message(id)).await;
    detail.expect("answers").expect("it is there").summary.text
}

async fn texts_of_ended_messages_are_forgotten(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for id in 1..=5 {
        deliver(&store, node, id).await;
    }
    accept(&store, vec![held(6, node), scheduled(7, 500)]).await;
    let old = SignedDuration::from_hours(24 * 36_500);
    assert!(!store.forget_texts(old, 10).await.expect("answers"));
    assert_eq!(text(&store, 1).await, "Your code is 1234");

    // The sweep is at the messages that were too young: it goes on from there, in steps.
    let mut steps = 0;
    while store.forget_texts(ANY_AGE, 2).await.expect("answers") {
        steps += 1;
        assert!(steps < 10);
    }
    for (id, expected) in [
        (1, ""),
        (5, ""),
        (6, "Your code is 1234"),
        (7, "Your code is 1234"),
    ] {
        assert_eq!(text(&store, id).await, expected, "{id}");
    }
}

/// A message to a number, without a callback.
fn to(submission: Submission, digits: &str) -> Submission {
    let mut submission = submission;
    submission.recipients[0].to = number(digits);
    submission.dlr_url = None;
    submission
}

/// Ends a message without a carrier.
async fn end(store: &Arc<dyn Store>, node: NodeId, id: u64) {
    let over = first_result(id, SendResult::Over(ABSENT));
    settle(store, node, vec![over]).await;
}

async fn found(store: &Arc<dyn Store>, digits: &str) -> Vec<(u64, bool)> {
    let page = store.list_subject(&number(digits), None).await;
    let page = page.expect("answers");
    assert_eq!(page.next, None);
    let short = |message: &SubjectMessage| (message.id.get(), message.is_over);
    page.messages.iter().map(short).collect()
}

const PERSON: &str = "+37129990001";

async fn a_number_is_found_as_recipient_and_as_sender(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let from_person = Submission {
        from: Some(Originator::parse(PERSON).expect("a number")),
        dlr_url: None,
        ..held(2, node)
    };
    let batch = vec![to(held(1, node), PERSON), from_person, held(3, node)];
    accept(&store, batch).await;
    assert_eq!(found(&store, PERSON).await, [(1, false), (2, false)]);
    end(&store, node, 2).await;
    assert_eq!(found(&store, PERSON).await, [(1, false), (2, true)]);
    assert_eq!(found(&store, "+37120000099").await, []);
}

async fn a_number_is_erased_from_ended_messages(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let reported = Submission {
        dlr_url: Some(url("https://example.com/?to=37129990001")),
        ..to(priced(held(1, node), acme, 1_000), PERSON)
    };
    let plain = to(priced(held(2, node), acme, 1_000), PERSON);
    let running = to(priced(held(3, node), acme, 1_000), PERSON);
    accept(&store, vec![reported, plain, running]).await;
    let over = first_result(1, SendResult::Over(Outcome::Delivered));
    let mut settled = settle(&store, node, vec![over]).await;
    end(&store, node, 2).await;
    let before = balance(&store, acme).await;

    let ids = [1, 2, 3].map(message);
    let erase = async || {
        let erased = store.erase_subject(&number(PERSON), &ids).await;
        erased.expect("answers")
    };
    assert_eq!(
        erase().await,
        1,
        "the callback of the first waits, the third has not ended"
    );
    let Settled::Ended(ended) = settled.remove(0) else {
        panic!("it ended")
    };
    let callback = ended.callback.expect("the node holds it");
    let received = attempted(&callback, CallbackNext::Done, 3);
    assert!(settle_callback(&store, node, received).await);
    assert_eq!(erase().await, 1);
    assert_eq!(erase().await, 0, "it is erased once");
    assert_eq!(found(&store, PERSON).await, [(3, false)]);

    let detail = store.find_message_detail(None, message(1)).await;
    let detail = detail.expect("answers").expect("it is there");
    assert_eq!(
        (detail.summary.to, detail.summary.text.as_str()),
        (None, "")
    );
    assert_eq!(detail.dlr_url, None);
    assert_eq!(detail.summary.price.micros(), 1_000, "prices stay");
    let (callback, attempts) = &detail.callbacks[0];
    assert_eq!(callback.url, "");
    assert_eq!(attempts[0].body, b"");
    assert_eq!(balance(&store, acme).await, before);
    let listed = store
        .search_messages(
            &MessageFilter {
                account: Some(acme),
                ..MessageFilter::default()
            },
            Cursor {
                before: None,
                limit: 10,
            },
        )
        .await
        .expect("erased messages can be listed");
    assert_eq!(listed.rows.len(), 3);
}

async fn a_lookup_loses_its_result(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![to(lookup(1, node), PERSON)]).await;
    let answered = SendResult::Answered {
        carrier: Some("alpha".to_owned()),
        outcome: Outcome::Delivered,
        report: r#"{"id":"1","error":0,"imsi":247010000000001}"#.to_owned(),
    };
    settle(&store, node, vec![first_result(1, answered)]).await;
    let erased = store.erase_subject(&number(PERSON), &[message(1)]).await;
    assert_eq!(erased.expect("answers"), 1);
    let left = store.find_lookup(account(1), message(1)).await;
    let left = left.expect("answers").expect("it is there");
    assert_eq!(left.report.as_deref(), Some(r#"{"id":"1","error":0}"#));
}
