//! Replies to words such as STOP.

use std::sync::Arc;

use domain::inbound::language::Language;
use domain::inbound::number::InboundNumber;
use domain::inbound::words::Request;
use domain::ports::{Delivered, DeliveredCopy, DueReply, IfUnclear, NewReply};
use domain::{Msisdn, NodeId};

use super::fixture::Database;
use super::inbound::sample;
use super::sample::create_account;

on_both_databases!(
    an_account_has_texts_of_its_own,
    a_reply_is_stored_with_its_message,
    a_reply_to_an_erased_number_is_not_sent,
);

async fn an_account_has_texts_of_its_own(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let find = async |request, language| {
        let found = store.find_reply(acme, request, language).await;
        found.expect("answers")
    };
    assert_eq!(find(Request::Stop, Language::German).await, None);
    for (account, request, language, text) in [
        (acme, Request::Stop, None, "for all"),
        (acme, Request::Stop, Some(Language::German), "first"),
        (acme, Request::Stop, Some(Language::German), "Ende"),
        (acme, Request::Help, None, ""),
        (other, Request::Start, None, "of another account"),
    ] {
        let set = store.set_reply(account, request, language, Some(text));
        set.await.expect("set");
    }
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(find(Request::Stop, Language::German).await, text("Ende"));
    assert_eq!(find(Request::Stop, Language::Greek).await, text("for all"));
    assert_eq!(find(Request::Help, Language::Greek).await, text(""));
    assert_eq!(find(Request::Start, Language::Greek).await, None);
    let unset = store.set_reply(acme, Request::Stop, Some(Language::German), None);
    unset.await.expect("set");
    assert_eq!(find(Request::Stop, Language::German).await, text("for all"));
}

async fn a_reply_is_stored_with_its_message(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let new = |id: u64, reply: Option<&str>| {
        let mut new = sample(id, Some(acme));
        new.reply = reply.map(|text| NewReply {
            account: acme,
            text: text.to_owned(),
        });
        new
    };
    let messages = [new(11, Some("Goodbye")), new(12, None), new(13, Some("Hi"))];
    let copies = (1..).map(|number| DeliveredCopy {
        session: 1,
        number,
        hash: [u8::try_from(number).expect("few"); 16],
    });
    let batch = copies.zip(
        messages
            .iter()
            .map(|new| Delivered::Message(Box::new(new.clone()))),
    );
    let batch = Arc::new(batch.collect::<Vec<_>>());
    let node = NodeId::new(1).expect("in range");
    let stored = store.store_delivered(node, batch, IfUnclear::Wait).await;
    stored.expect("stored");
    let due = store.list_due_replies(10).await.expect("answers");
    let expected = |index: usize, text: &str| DueReply {
        id: messages[index].message.id,
        account: acme,
        from: InboundNumber::parse("1234").expect("a number"),
        to: Msisdn::parse("+37120000001").expect("a number"),
        text: text.to_owned(),
        received_at: messages[index].message.received_at,
    };
    assert_eq!(due, [expected(0, "Goodbye"), expected(2, "Hi")]);
    let first = store.list_due_replies(1).await.expect("answers");
    assert_eq!(first, due[..1]);
    store.remove_due_reply(due[0].id).await.expect("removed");
    let left = store.list_due_replies(10).await.expect("answers");
    assert_eq!(left, due[1..]);
}

async fn a_reply_to_an_erased_number_is_not_sent(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let mut new = sample(21, None);
    new.reply = Some(NewReply {
        account: acme,
        text: "Goodbye".to_owned(),
    });
    let id = new.message.id;
    let copy = DeliveredCopy {
        session: 1,
        number: 1,
        hash: [1; 16],
    };
    let batch = Arc::new(vec![(copy, Delivered::Message(Box::new(new)))]);
    let node = NodeId::new(1).expect("in range");
    let stored = store.store_delivered(node, batch, IfUnclear::Wait).await;
    stored.expect("stored");
    let handset = Msisdn::parse("+37120000001").expect("a number");
    let erased = store.erase_inbound_subject(&handset, &[id]).await;
    assert_eq!(erased.expect("answers"), 1);
    assert_eq!(store.list_due_replies(10).await.expect("answers"), []);
}
