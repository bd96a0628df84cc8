//! Messages from handsets.

use std::sync::Arc;

use domain::inbound::assembly::PartText;
use domain::inbound::header::Concatenation;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::inbound::text::Alphabet;
use domain::message::text::{Coding, Udh};
use domain::ports::{
    CallbackFilter, Cursor, Delivered, DeliveredCopy, DeliveredResult, IfUnclear, InboundFilter,
    InboundOwner, InboundPart, NewInbound, NumberEntry, SenderRight, Store,
};
use domain::{AccountId, CallbackUrl, MessageId, Money, Network, NodeId, Timestamp};
use jiff::SignedDuration;

use super::fixture::Database;
use super::money::{assert_balanced, balance};
use super::sample::{create_account, message};
use super::steps::join;

on_both_databases!(
    numbers_and_keywords_belong_to_accounts,
    an_account_may_send_under_its_numbers,
    a_message_is_stored_with_its_callback,
    a_message_with_a_price_is_charged_once,
    parts_become_one_message,
    a_reference_is_used_again,
    messages_are_listed_by_owner_sender_number_and_time,
    a_message_with_a_source_is_stored_once,
    old_messages_and_copies_are_pruned,
    a_repetition_is_recognised_when_its_session_has_ended,
);

pub(super) fn number(text: &str) -> InboundNumber {
    InboundNumber::parse(text).expect("a number")
}

fn url(text: &str) -> CallbackUrl {
    CallbackUrl::parse(text).expect("a URL")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a time")
}

pub(super) fn sample(id: u64, account: Option<AccountId>) -> NewInbound {
    NewInbound {
        message: InboundMessage {
            id: message(id),
            account,
            carrier: "alpha".to_owned(),
            from: "+37120000001".to_owned(),
            to: number("1234"),
            text: "Hello \u{0} Ж".to_owned(),
            coding: Coding::Ucs2,
            udh: Udh::from_bytes(&[3, 0x70, 1, 9]).ok(),
            network: Network::new("247", "02"),
            parts: 1,
            keyword: Some("Join".to_owned()),
            in_reply_to: MessageId::new(5),
            is_incomplete: false,
            received_at: at(0),
            price: Money::ZERO,
        },
        url: account.map(|_| url("https://example.com/inbound")),
        reply: None,
    }
}

pub(super) fn copy(session: i64, number: i64, hash: u8) -> DeliveredCopy {
    DeliveredCopy {
        session,
        number,
        hash: [hash; 16],
    }
}

pub(super) async fn deliver(
    store: &Arc<dyn Store>,
    node: NodeId,
    batch: Vec<(DeliveredCopy, Delivered)>,
) -> Vec<DeliveredResult> {
    let stored = store.store_delivered(node, Arc::new(batch), IfUnclear::Wait);
    stored.await.expect("answers")
}

async fn deliver_message(store: &Arc<dyn Store>, copy: DeliveredCopy, id: u64) -> DeliveredResult {
    let node = NodeId::new(1).expect("in range");
    let delivered = Delivered::Message(Box::new(sample(id, None)));
    deliver(store, node, vec![(copy, delivered)]).await[0]
}

async fn ids(store: &Arc<dyn Store>, filter: &InboundFilter) -> Vec<u64> {
    let all = Cursor {
        before: None,
        limit: 100,
    };
    let page = store.list_inbound(filter, all).await.expect("answers");
    page.rows.iter().map(|row| row.id.get()).collect()
}

async fn numbers_and_keywords_belong_to_accounts(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let entry = |keyword: Option<&str>| NumberEntry {
        number: number("+37120000009"),
        keyword: keyword.map(str::to_owned),
        account: acme,
        url: keyword.map(|_| url("https://example.com/join")),
    };
    for (keyword, added) in [
        (None, true),
        (Some("Join"), true),
        (Some("jóin"), false),
        (None, false),
    ] {
        let result = store.add_number(&entry(keyword)).await;
        assert_eq!(result.expect("answers"), added, "{keyword:?}");
    }
    let account_url = url("https://example.com/all");
    let set = store.set_inbound_url(acme, Some(&account_url));
    set.await.expect("set");
    let listed = store.list_numbers().await.expect("answers");
    let shown: Vec<_> = listed
        .iter()
        .map(|it| (it.entry.clone(), it.account_name.as_str()))
        .collect();
    assert_eq!(
        shown,
        [(entry(None), "acme"), (entry(Some("Join")), "acme")]
    );
    assert!(
        listed
            .iter()
            .all(|it| it.account_url.as_ref() == Some(&account_url))
    );
    let remove = async |keyword| store.remove_number(&number("+37120000009"), keyword).await;
    assert!(remove(Some("JOIN")).await.expect("answers"));
    assert!(!remove(Some("JOIN")).await.expect("answers"));
    assert_eq!(store.list_numbers().await.expect("answers").len(), 1);
}

async fn an_account_may_send_under_its_numbers(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    for (shown, keyword) in [("+37120000009", None), ("1234", Some("Join".to_owned()))] {
        let entry = NumberEntry {
            number: number(shown),
            keyword,
            account: acme,
            url: None,
        };
        assert!(store.add_number(&entry).await.expect("answers"));
    }
    for (name, account, digits, right) in [
        ("a number", acme, "37120000009", Some(SenderRight::Number)),
        ("a keyword", acme, "1234", Some(SenderRight::Number)),
        ("another account's", other, "37120000009", None),
        ("another number", acme, "37120000008", None),
    ] {
        let found = store.find_sender_right(account, digits).await;
        assert_eq!(found.expect("answers"), right, "{name}");
    }
    let version = store.access_version().await.expect("answers");
    let removed = store.remove_number(&number("1234"), Some("join")).await;
    assert!(removed.expect("answers"));
    let right = store.find_sender_right(acme, "1234").await;
    assert_eq!(right.expect("answers"), None);
    let after = store.access_version().await.expect("answers");
    assert!(after > version, "nodes must forget it");
    let removed = store.remove_number(&number("1234"), Some("join")).await;
    assert!(!removed.expect("answers"));
    assert_eq!(store.access_version().await.expect("answers"), after);
}

async fn a_message_is_stored_with_its_callback(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let node = join(&store).await;
    let (own, unclaimed) = (sample(11, Some(acme)), sample(12, None));
    let batch = [&own, &unclaimed].map(|new| Delivered::Message(Box::new(new.clone())));
    let batch = (0..).zip(batch).map(|(n, new)| (copy(1, n, 1), new));
    let results = deliver(&store, node, batch.collect()).await;
    assert_eq!(results, [DeliveredResult::Stored; 2]);
    let find = async |account, id| {
        let found = store.find_inbound(account, message(id)).await;
        found.expect("answers")
    };
    assert_eq!(find(Some(acme), 11).await, Some(own.message.clone()));
    assert_eq!(find(Some(acme), 12).await, None);
    assert_eq!(find(None, 12).await, Some(unclaimed.message));
    let newest = Cursor {
        before: None,
        limit: 10,
    };
    let every = CallbackFilter::default();
    let callbacks = store.search_callbacks(&every, newest);
    let callbacks = callbacks.await.expect("answers").rows;
    assert_eq!(callbacks.len(), 1, "an unclaimed message has no callback");
    assert_eq!(callbacks[0].payload, own.message.payload());
    assert_eq!(callbacks[0].url, "https://example.com/inbound");
    let claimed = store.claim_callbacks(node, 10, &[]).await.expect("answers");
    assert_eq!(claimed.due.len(), 1);
}

pub(super) fn part(reference: u16, total: u8, sequence: u8, second: i64) -> InboundPart {
    InboundPart {
        carrier: "alpha".to_owned(),
        from: "+37120000001".to_owned(),
        to: number("1234"),
        concatenation: Concatenation::new(reference, total, sequence).expect("a part"),
        text: PartText {
            sequence,
            alphabet: Alphabet::Gsm7,
            octets: vec![b'a' + sequence],
        },
        udh: None,
        received_at: at(second),
    }
}

pub(super) async fn deliver_parts(store: &Arc<dyn Store>, parts: &[InboundPart], first: i64) {
    let batch = (first..).zip(parts).map(|(n, part)| {
        let hash = u8::try_from(n).expect("few");
        (copy(1, n, hash), Delivered::Part(Box::new(part.clone())))
    });
    let node = NodeId::new(1).expect("in range");
    let results = deliver(store, node, batch.collect()).await;
    assert!(
        results
            .iter()
            .all(|result| *result == DeliveredResult::Stored)
    );
}

async fn a_message_with_a_price_is_charged_once(database: Database) {
    let store = database.open().await;
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let node = join(&store).await;
    let before = balance(&store, acme).await;
    let priced = |id, account, micros| {
        let mut new = sample(id, account);
        new.message.price = Money::from_micros(micros);
        new
    };
    let messages = [
        priced(11, Some(acme), 300),
        priced(12, Some(other), 50),
        priced(13, Some(acme), 400),
        priced(14, None, 1_000),
        priced(15, Some(acme), 0),
    ];
    let delivered = |new: &NewInbound| Delivered::Message(Box::new(new.clone()));
    let batch = (0..).zip(&messages);
    let batch = batch.map(|(n, new)| (copy(1, n, u8::try_from(n).expect("small")), delivered(new)));
    let results = deliver(&store, node, batch.collect()).await;
    assert_eq!(results, [DeliveredResult::Stored; 5]);
    assert_eq!(balance(&store, acme).await, before - 700);
    assert_eq!(balance(&store, other).await, before - 50);
    let found = store.find_inbound(Some(acme), message(13)).await;
    assert_eq!(found.expect("answers").as_ref(), Some(&messages[2].message));

    // A repetition costs nothing. What was received is charged even if the account has no money left.
    store.end_delivering(1).await.expect("ends");
    let again = vec![(copy(2, 0, 0), delivered(&priced(16, Some(acme), 300)))];
    let results = deliver(&store, node, again).await;
    assert_eq!(results, [DeliveredResult::Repeated]);
    assert_eq!(balance(&store, acme).await, before - 700);
    let dear = priced(17, Some(acme), before);
    assert!(store.store_once([7; 16], &dear).await.expect("answers"));
    assert!(!store.store_once([7; 16], &dear).await.expect("answers"));
    assert_eq!(balance(&store, acme).await, -700);
    assert_balanced(&store).await;
    let (always, never) = (at(-1_000_000_000), at(3_000_000_000));
    let totals = store.ledger_totals(acme, always, never).await;
    let totals = totals.expect("answers");
    assert_eq!(totals.inbound.micros(), -700 - before);
    assert_eq!((totals.inbound_messages, totals.charged_messages), (3, 0));
    assert_eq!(totals.closing().micros(), -700);
}

async fn parts_become_one_message(database: Database) {
    let store = database.open().await;
    let key = part(7, 3, 1, 0).key();
    deliver_parts(&store, &[part(7, 3, 3, 2), part(7, 3, 1, 1)], 0).await;
    let before = at(0);
    assert_eq!(store.find_part_set(&key).await.expect("answers"), None);
    assert_eq!(store.list_part_sets(before, 10).await.expect("answers"), []);
    let late = store.list_part_sets(at(1), 10).await.expect("answers");
    assert_eq!(late.len(), 1, "it has waited long enough");
    assert!(!late[0].is_complete());
    deliver_parts(&store, &[part(7, 3, 2, 3)], 2).await;
    let set = store.find_part_set(&key).await.expect("answers");
    let set = set.expect("it is complete");
    let sequences: Vec<u8> = set.parts.iter().map(|part| part.sequence).collect();
    assert_eq!(sequences, [1, 2, 3]);
    assert_eq!(set.received_at, at(1));
    let listed = store.list_part_sets(before, 10).await.expect("answers");
    assert_eq!(listed, std::slice::from_ref(&set));
    let replace = async |set| {
        let replaced = store.replace_parts(set, &sample(21, None)).await;
        replaced.expect("answers")
    };
    assert!(!replace(&late[0]).await, "another part came");
    assert!(replace(&set).await);
    assert!(!replace(&set).await, "it was replaced before");
    assert_eq!(ids(&store, &InboundFilter::default()).await, [21]);
    assert_eq!(store.list_part_sets(at(9), 10).await.expect("answers"), []);
}

/// The parts of an earlier text never came.
async fn a_reference_is_used_again(database: Database) {
    let store = database.open().await;
    let parts = [part(7, 2, 1, 0), part(7, 2, 1, 5), part(7, 2, 2, 6)];
    deliver_parts(&store, &parts, 0).await;
    let set = store.find_part_set(&parts[0].key()).await.expect("answers");
    let set = set.expect("the later one is complete");
    assert_eq!(set.received_at, at(5));
    let replaced = store.replace_parts(&set, &sample(21, None)).await;
    assert!(replaced.expect("answers"));
    let left = store.list_part_sets(at(9), 10).await.expect("answers");
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].parts.len(), left[0].received_at), (1, at(0)));
}

async fn a_repetition_is_recognised_when_its_session_has_ended(database: Database) {
    use DeliveredResult::{Repeated, Stored};
    let store = database.open().await;
    assert_eq!(deliver_message(&store, copy(1, 0, 9), 31).await, Stored);
    assert_eq!(
        deliver_message(&store, copy(1, 1, 9), 32).await,
        Stored,
        "the same session"
    );
    assert_eq!(deliver_message(&store, copy(1, 2, 8), 33).await, Stored);
    store.confirm_copies(&[(1, 0)]).await.expect("confirmed");
    store.end_delivering(1).await.expect("ended");
    assert_eq!(deliver_message(&store, copy(2, 0, 9), 34).await, Repeated);
    assert_eq!(
        deliver_message(&store, copy(2, 1, 9), 35).await,
        Stored,
        "only one was in doubt"
    );
    assert_eq!(deliver_message(&store, copy(2, 2, 7), 36).await, Stored);
    // The answer to the repetition may be lost, too.
    store.end_delivering(2).await.expect("ended");
    assert_eq!(deliver_message(&store, copy(3, 0, 9), 37).await, Repeated);
    assert_eq!(deliver_message(&store, copy(3, 1, 9), 38).await, Repeated);
    assert_eq!(deliver_message(&store, copy(3, 2, 9), 39).await, Stored);
    assert_eq!(
        ids(&store, &InboundFilter::default()).await,
        [39, 36, 35, 33, 32, 31]
    );
}

async fn messages_are_listed_by_owner_sender_number_and_time(database: Database) {
    let store = database.open().await;
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let node = join(&store).await;
    let cases = [
        (1, Some(acme), "+37120000001", "1234"),
        (2, Some(acme), "+37120000002", "1234"),
        (3, Some(other), "+37120000001", "5678"),
        (4, None, "+37120000001", "1234"),
        (5, Some(acme), "+37120000001", "5678"),
    ];
    let batch = cases.map(|(id, account, from, to)| {
        let mut new = sample(id, account);
        from.clone_into(&mut new.message.from);
        new.message.to = number(to);
        new.message.received_at = at(i64::try_from(id).expect("small"));
        let n = i64::try_from(id).expect("small");
        (copy(1, n, 1), Delivered::Message(Box::new(new)))
    });
    deliver(&store, node, batch.to_vec()).await;
    let of = |owner| InboundFilter {
        owner,
        ..InboundFilter::default()
    };
    let own = of(InboundOwner::Account(acme));
    let from = Some("+37120000001".to_owned());
    for (name, filter, expected) in [
        ("all", of(InboundOwner::Anyone), vec![5, 4, 3, 2, 1]),
        ("unclaimed", of(InboundOwner::Nobody), vec![4]),
        ("of an account", own.clone(), vec![5, 2, 1]),
        (
            "of a sender",
            InboundFilter {
                from: from.clone(),
                ..own.clone()
            },
            vec![5, 1],
        ),
        (
            "to a number",
            InboundFilter {
                to: Some(number("1234")),
                ..own.clone()
            },
            vec![2, 1],
        ),
        (
            "of a sender to a number",
            InboundFilter {
                from,
                to: Some(number("5678")),
                ..own.clone()
            },
            vec![5],
        ),
        (
            "in a time",
            InboundFilter {
                since: Some(at(2)),
                until: Some(at(5)),
                ..own.clone()
            },
            vec![2],
        ),
    ] {
        assert_eq!(ids(&store, &filter).await, expected, "{name}");
    }
    let two = Cursor {
        before: None,
        limit: 2,
    };
    let page = store.list_inbound(&own, two).await.expect("answers");
    assert_eq!(page.next, Some(message(2)));
    let rest = Cursor {
        before: page.next,
        limit: 2,
    };
    let page = store.list_inbound(&own, rest).await.expect("answers");
    assert_eq!((page.rows.len(), page.next), (1, None));
}

async fn a_message_with_a_source_is_stored_once(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let acme = create_account(&store, "acme").await;
    let node = join(&store).await;
    let source = [7; 16];
    assert!(!store.has_source(source).await.expect("answers"));
    // Two nodes get it at the same time.
    let (one, two) = (sample(11, Some(acme)), sample(12, Some(acme)));
    let (first, second) = tokio::join!(
        store.store_once(source, &one),
        other.store_once(source, &two)
    );
    let stored = [first.expect("answers"), second.expect("answers")];
    assert!(stored[0] != stored[1], "{stored:?}");
    assert!(other.has_source(source).await.expect("answers"));
    let late = store.store_once(source, &sample(13, Some(acme))).await;
    assert!(!late.expect("answers"));
    let different = store.store_once([8; 16], &sample(14, None)).await;
    assert!(different.expect("answers"));
    let kept = if stored[0] { 11 } else { 12 };
    assert_eq!(ids(&store, &InboundFilter::default()).await, [14, kept]);
    let claimed = store.claim_callbacks(node, 10, &[]).await.expect("answers");
    assert_eq!(claimed.due.len(), 1);

    let age = SignedDuration::from_hours(1);
    assert_eq!(store.prune_inbound(age, 10).await.expect("answers"), 2);
    let is_known = store.has_source(source).await.expect("answers");
    assert!(!is_known, "it is forgotten with its message");
}

async fn old_messages_and_copies_are_pruned(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let node = join(&store).await;
    let batch = (1..=3).map(|id| {
        let n = i64::try_from(id).expect("small");
        (
            copy(1, n, 1),
            Delivered::Message(Box::new(sample(id, Some(acme)))),
        )
    });
    deliver(&store, node, batch.collect()).await;
    let age = SignedDuration::from_hours(1);
    assert_eq!(store.prune_inbound(age, 2).await.expect("answers"), 2);
    assert_eq!(ids(&store, &InboundFilter::default()).await, [3]);
    let far = Timestamp::from_second(4_000_000_000).expect("a time");
    assert_eq!(store.prune_copies(far, 2).await.expect("answers"), 2);
    assert_eq!(store.prune_copies(far, 2).await.expect("answers"), 1);
}
