//! Charges, limits, and the ledger.

use std::sync::Arc;

use domain::billing::{EntryKind, NotPaid, SpendingRules};
use domain::delivery::SendResult;
use domain::message::{Submission, TestMode};
use domain::ports::{Accepted, Settled, Store};
use domain::{AccountId, Country, Money, Msisdn, Network, Outcome};

use super::sample::{accept, at, create_account, hash, keyed, message, new_token, submission};
use super::steps::{first_result, held, join, settle};

on_both_stores!(
    messages_are_charged_with_their_batch,
    messages_beyond_the_balance_are_not_stored,
    the_balance_may_fall_to_the_credit_limit,
    a_daily_cap_ends_with_the_day,
    messages_per_recipient_and_hour_are_limited,
    test_messages_are_free_and_do_not_count,
    the_key_of_an_unpaid_request_can_be_reused,
    credits_and_rules_are_stored,
    reports_and_records_name_the_network,
);

/// The balance of a new account of [`create_account`].
pub(crate) const START: i64 = 12_345_678;
pub(crate) const MILLION: i64 = 1_000_000;

fn micros(amount: i64) -> Money {
    Money::from_micros(amount)
}

/// The same submission by this account, at a price per recipient in micros.
pub(crate) fn priced(submission: Submission, owner: AccountId, price: i64) -> Submission {
    let mut submission = submission;
    submission.account = owner;
    for recipient in &mut submission.recipients {
        recipient.price = micros(price);
    }
    submission
}

pub(crate) async fn balance(store: &Arc<dyn Store>, owner: AccountId) -> i64 {
    let found = store
        .find_account_by_id(owner)
        .await
        .expect("the store answers");
    found.expect("the account exists").balance.micros()
}

pub(crate) async fn assert_balanced(store: &Arc<dyn Store>) {
    assert_eq!(store.check_ledger().await.expect("the store answers"), []);
}

/// Kind, amount and messages of the newest entries.
pub(crate) async fn entries(
    store: &Arc<dyn Store>,
    owner: AccountId,
) -> Vec<(EntryKind, i64, u32)> {
    let entries = store
        .list_ledger(owner, None, 100)
        .await
        .expect("the store answers");
    let short = entries
        .iter()
        .map(|entry| (entry.kind, entry.amount.micros(), entry.messages));
    short.collect()
}

async fn set_rules(store: &Arc<dyn Store>, owner: AccountId, rules: SpendingRules) {
    assert!(
        store
            .set_rules(owner, None, &rules)
            .await
            .expect("the store answers")
    );
}

async fn messages_are_charged_with_their_batch(store: Arc<dyn Store>) {
    let (acme, other) = (
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    );
    let batch = vec![
        priced(submission(1, 2), acme, 10_000),
        priced(submission(3, 1), other, 7),
        priced(submission(4, 3), acme, 500),
        priced(submission(7, 1), acme, 0),
    ];
    assert_eq!(accept(&store, batch).await, [Accepted::Stored; 4]);
    assert_eq!(balance(&store, acme).await, START - 21_500);
    assert_eq!(balance(&store, other).await, START - 7);
    assert_eq!(
        entries(&store, acme).await,
        [
            (EntryKind::Charge, -21_500, 6),
            (EntryKind::Credit, START, 0)
        ],
    );
    let newest = store
        .list_ledger(acme, None, 1)
        .await
        .expect("the store answers");
    assert_eq!(
        (newest[0].balance, newest[0].at),
        (micros(START - 21_500), at(0))
    );
    assert_balanced(&store).await;
}

async fn messages_beyond_the_balance_are_not_stored(store: Arc<dyn Store>) {
    let (acme, rich) = (
        create_account(&store, "acme").await,
        create_account(&store, "rich").await,
    );
    let not_paid = |cost, available| {
        let (cost, available) = (micros(cost), micros(available));
        Accepted::NotPaid(NotPaid::Balance { cost, available })
    };
    let batch = vec![
        priced(submission(1, 2), acme, 5 * MILLION),
        priced(submission(3, 1), acme, 3 * MILLION),
        priced(submission(4, 1), rich, 3 * MILLION),
        priced(submission(5, 1), acme, 2 * MILLION),
    ];
    let expected = [
        Accepted::Stored,
        not_paid(3 * MILLION, 2_345_678),
        Accepted::Stored,
        Accepted::Stored,
    ];
    assert_eq!(accept(&store, batch).await, expected);
    assert_eq!(balance(&store, acme).await, 345_678);
    let refused = store
        .find_message(acme, message(3))
        .await
        .expect("the store answers");
    assert_eq!(refused, None);
    assert_balanced(&store).await;

    // Either all recipients of a request are paid for, or none.
    let three = priced(submission(11, 3), acme, 150_000);
    assert_eq!(
        accept(&store, vec![three]).await,
        [not_paid(450_000, 345_678)]
    );
    let exact = priced(submission(21, 1), acme, 345_678);
    assert_eq!(accept(&store, vec![exact]).await, [Accepted::Stored]);
    assert_eq!(balance(&store, acme).await, 0);
    assert_balanced(&store).await;
}

async fn the_balance_may_fall_to_the_credit_limit(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let credit_limit = micros(1_000);
    set_rules(
        &store,
        acme,
        SpendingRules {
            credit_limit,
            ..SpendingRules::default()
        },
    )
    .await;
    for (first, price, stored) in [
        (1, START, true),
        (2, 999, true),
        (3, 2, false),
        (4, 1, true),
        (5, 1, false),
        (6, 0, true),
    ] {
        let outcome = accept(&store, vec![priced(submission(first, 1), acme, price)]).await;
        assert_eq!(
            outcome[0] == Accepted::Stored,
            stored,
            "{first}: {outcome:?}"
        );
    }
    assert_eq!(balance(&store, acme).await, -1_000);
    assert_balanced(&store).await;
}

async fn a_daily_cap_ends_with_the_day(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let daily_cap = Some(micros(100));
    set_rules(
        &store,
        acme,
        SpendingRules {
            daily_cap,
            ..SpendingRules::default()
        },
    )
    .await;
    let day = 24 * 3600;
    for (first, second, price, left) in [
        (1, 0, 60, None),
        (2, 1, 41, Some(40)),
        (3, 2, 40, None),
        (4, 3, 1, Some(0)),
        (5, day, 100, None),
        (6, day + 1, 1, Some(0)),
        (7, 4, 1, Some(0)),
    ] {
        let sent = Submission {
            accepted_at: at(second),
            ..priced(submission(first, 1), acme, price)
        };
        let expected = left.map_or(Accepted::Stored, |left| {
            let (cost, left) = (micros(price), micros(left));
            Accepted::NotPaid(NotPaid::DailyCap { cost, left })
        });
        assert_eq!(accept(&store, vec![sent]).await, [expected], "{first}");
    }
    assert_eq!(balance(&store, acme).await, START - 200);
    assert_balanced(&store).await;
}

async fn messages_per_recipient_and_hour_are_limited(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let limited = SpendingRules {
        per_recipient_hour: Some(2),
        ..SpendingRules::default()
    };
    set_rules(&store, acme, limited).await;
    let to = submission(1, 1).recipients[0].to;
    let over_limit = Accepted::NotPaid(NotPaid::RecipientHour { to, limit: 2 });
    // A request with `same` messages to one recipient, and one to another.
    let sent = |first: u64, second: i64, same: usize| {
        let mut sent = priced(submission(first, same as u64 + 1), acme, 1);
        sent.accepted_at = at(second);
        for recipient in &mut sent.recipients[..same] {
            recipient.to = to;
        }
        sent
    };
    for (first, second, same, expected) in [
        (100, 0, 3, over_limit),
        (200, 0, 1, Accepted::Stored),
        (300, 10, 2, over_limit),
        (400, 10, 1, Accepted::Stored),
        (500, 3_599, 1, over_limit),
        (600, 3_600, 1, Accepted::Stored),
        (700, 3_601, 1, over_limit),
        (800, 3_610, 1, Accepted::Stored),
    ] {
        let sent = sent(first, second, same);
        let recipients: Vec<Msisdn> = sent.recipients.iter().map(|one| one.to).collect();
        let flooded = store.find_flooded(acme, &recipients, 2, at(second)).await;
        let is_flooded = expected != Accepted::Stored;
        assert_eq!(
            flooded.expect("answers"),
            is_flooded.then_some(to),
            "{first}"
        );
        assert_eq!(accept(&store, vec![sent]).await, [expected], "{first}");
    }
    // The limit also holds within a batch.
    let batch = vec![
        sent(1_000, 10_000, 1),
        sent(1_100, 10_000, 1),
        sent(1_200, 10_000, 1),
    ];
    assert_eq!(
        accept(&store, batch).await,
        [Accepted::Stored, Accepted::Stored, over_limit]
    );
    assert_eq!(balance(&store, acme).await, START - 12);
    assert_balanced(&store).await;

    assert_eq!(
        store
            .prune_recipients(at(13_600), 4)
            .await
            .expect("answers"),
        4
    );
    assert_eq!(
        store
            .prune_recipients(at(13_600), 100)
            .await
            .expect("answers"),
        8
    );
    assert_eq!(
        store
            .prune_recipients(at(13_600), 100)
            .await
            .expect("answers"),
        0
    );
}

async fn test_messages_are_free_and_do_not_count(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let limited = SpendingRules {
        per_recipient_hour: Some(1),
        ..SpendingRules::default()
    };
    set_rules(&store, acme, limited).await;
    let to = submission(1, 1).recipients[0].to;
    for first in 1..4 {
        let mut test_message = priced(submission(first, 1), acme, 0);
        test_message.test_mode = Some(TestMode::Deliver);
        test_message.recipients[0].to = to;
        assert_eq!(accept(&store, vec![test_message]).await, [Accepted::Stored]);
    }
    assert_eq!(balance(&store, acme).await, START);
    assert_balanced(&store).await;
}

async fn the_key_of_an_unpaid_request_can_be_reused(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let expensive = |first| priced(keyed(first, 7, 7), acme, 10 * MILLION);
    let plain = priced(submission(51, 1), acme, 1);
    let batch = vec![expensive(1), plain, expensive(11)];
    let outcomes = accept(&store, batch).await;
    assert!(matches!(outcomes[0], Accepted::NotPaid(_)), "{outcomes:?}");
    assert_eq!(outcomes[1], Accepted::Stored);
    assert!(matches!(outcomes[2], Accepted::NotPaid(_)), "{outcomes:?}");

    store
        .credit(acme, micros(20 * MILLION), None, at(3))
        .await
        .expect("answers");
    let paid = expensive(21);
    assert_eq!(accept(&store, vec![paid.clone()]).await, [Accepted::Stored]);
    assert_eq!(
        accept(&store, vec![expensive(31)]).await,
        [Accepted::Replayed(paid.receipt())]
    );
    assert_eq!(balance(&store, acme).await, START - 1);
    assert_balanced(&store).await;
}

async fn credits_and_rules_are_stored(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    store
        .create_token(&new_token(acme, "one"))
        .await
        .expect("answers");
    let credit = store
        .credit(acme, micros(-5), Some("a correction"), at(9))
        .await
        .expect("answers");
    assert_eq!(credit, Some(micros(START - 5)));
    let newest = store
        .list_ledger(acme, None, 1)
        .await
        .expect("answers")
        .remove(0);
    assert_eq!(
        (newest.note.as_deref(), newest.amount, newest.at),
        (Some("a correction"), micros(-5), at(9))
    );
    let nobody = AccountId::new(99).expect("an ID");
    assert_eq!(
        store
            .credit(nobody, micros(1), None, at(9))
            .await
            .expect("answers"),
        None
    );

    let rules = SpendingRules {
        credit_limit: micros(1),
        daily_cap: Some(micros(2)),
        per_recipient_hour: Some(3),
        countries: "LV EE".parse().expect("countries"),
        approved_senders_only: true,
        requests_per_second: 25,
        codes_per_day: 7,
        admins_consent_only: true,
        texts_for: domain::billing::TextRoles::only(vec![domain::Role::Admin]),
        low_balance: Some(Money::from_micros(10_000_000)),
        ported_numbers: true,
        verify_price: micros(20_000),
    };
    let version = store.access_version().await.expect("answers");
    set_rules(&store, acme, rules.clone()).await;
    assert!(store.access_version().await.expect("answers") > version);
    assert!(
        !store
            .set_rules(nobody, None, &rules)
            .await
            .expect("answers")
    );
    let found = store
        .find_account("acme")
        .await
        .expect("answers")
        .expect("it exists");
    assert_eq!(found.rules, rules);
    let access = store
        .find_access(&hash("one"))
        .await
        .expect("answers")
        .expect("it exists");
    assert!(access.countries.allows(Country::parse("EE").ok()));
    assert!(!access.countries.allows(Country::parse("LT").ok()));
    assert_eq!(access.requests_per_second, 25);
    assert_balanced(&store).await;
}

async fn reports_and_records_name_the_network(store: Arc<dyn Store>) {
    let node = join(&store).await;
    for (id, network, suffix) in [
        (1, Network::new("247", "01"), r#","mcc":"247","mnc":"01"}"#),
        (
            2,
            Network::new("310", "026"),
            r#","mcc":"310","mnc":"026"}"#,
        ),
        (3, None, r#""error":0}"#),
    ] {
        let mut sent = held(id, node);
        sent.recipients[0].network = network;
        accept(&store, vec![sent]).await;
        let found = store
            .find_message(super::sample::account(1), message(id))
            .await;
        assert_eq!(
            found.expect("answers").expect("it is there").network,
            network
        );
        let over = first_result(id, SendResult::Over(Outcome::Delivered));
        match settle(&store, node, vec![over]).await.remove(0) {
            Settled::Ended(ended) => {
                let payload = ended.callback.expect("it is held").payload;
                assert!(payload.ends_with(suffix), "{payload}");
            }
            other => panic!("{other:?}"),
        }
    }
}
