//! Verifications: one pending code for each account and number, few guesses, limits, and conversion by prefix.

use std::sync::Arc;

use domain::billing::{EntryKind, SpendingRules};
use domain::code_cap::CodeCapReached;
use domain::ids::VerificationId;
use domain::ports::{NewVerification, Registered, Started, Store};
use domain::verify::{
    CodeLength, Conversion, Judgement, NetworkConversion, OneTimeCode, PrefixConversion,
    Verification, VerificationState,
};
use domain::{AccountId, Country, Money, Msisdn, Network};
use tokio::task::JoinSet;

use super::fixture::Database;
use super::money::{assert_balanced, balance};
use super::sample::{at, create_account};

const RIGHT: &str = "123456";
const WRONG: &str = "654321";
const NUMBER: &str = "+37120000001";
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

fn code(digits: &str) -> OneTimeCode {
    digits.parse().expect("digits")
}

/// A verification with the code [`RIGHT`] that is started at this second and valid for ten minutes.
fn new(account: AccountId, number: &str, second: i64) -> NewVerification {
    NewVerification {
        account,
        to: Msisdn::parse(number).expect("a number"),
        prefix: 371_200,
        network: Network::new("247", "01"),
        country: Country::parse("LV").ok(),
        length: CodeLength::default(),
        hash: code(RIGHT).hash([3; 16]),
        created_at: at(second),
        expires_at: at(second + 600),
        key: None,
    }
}

async fn start(store: &Arc<dyn Store>, new: &NewVerification) -> Started {
    let started = store.start_verification(new).await;
    started.expect("the store answers")
}

async fn started(store: &Arc<dyn Store>, new: &NewVerification) -> VerificationId {
    match start(store, new).await {
        Started::New(id) => id,
        other => panic!("not started: {other:?}"),
    }
}

async fn guess(
    store: &Arc<dyn Store>,
    account: AccountId,
    id: VerificationId,
    digits: &str,
    second: i64,
) -> Option<Judgement> {
    let code = code(digits);
    let judged = store.check_verification(account, id, &code, at(second));
    judged.await.expect("the store answers")
}

async fn find(
    store: &Arc<dyn Store>,
    account: AccountId,
    id: VerificationId,
) -> Option<Verification> {
    let found = store.find_verification(account, id).await;
    found.expect("the store answers")
}

async fn state(
    store: &Arc<dyn Store>,
    account: AccountId,
    id: VerificationId,
) -> VerificationState {
    find(store, account, id).await.expect("stored").state
}

const fn wrong(tries_left: u32) -> Judgement {
    Judgement::Wrong { tries_left }
}

const fn over(state: VerificationState) -> Judgement {
    Judgement::Over(state)
}

async fn a_verification_is_stored_and_approved_once(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let input = new(acme, NUMBER, 0);
    let id = started(&store, &input).await;
    let expected = Verification {
        id,
        account: acme,
        to: input.to,
        length: input.length,
        hash: input.hash,
        state: VerificationState::Pending,
        tries: 0,
        created_at: at(0),
        expires_at: at(600),
        price: Money::ZERO,
    };
    assert_eq!(find(&store, acme, id).await, Some(expected));
    assert_eq!(find(&store, other, id).await, None, "another account");
    assert_eq!(guess(&store, other, id, RIGHT, 1).await, None);

    let short = guess(&store, acme, id, "1234", 1).await;
    let length = CodeLength::default();
    assert_eq!(short, Some(Judgement::WrongLength(length)));
    assert_eq!(guess(&store, acme, id, WRONG, 1).await, Some(wrong(4)));
    assert_eq!(
        guess(&store, acme, id, RIGHT, 599).await,
        Some(Judgement::Right)
    );
    let approved = Some(over(VerificationState::Approved));
    assert_eq!(guess(&store, acme, id, RIGHT, 600).await, approved);
    let found = find(&store, acme, id).await.expect("stored");
    assert_eq!((found.state, found.tries), (VerificationState::Approved, 1));
    started(&store, &new(acme, NUMBER, 2)).await;
}

async fn five_wrong_guesses_end_it(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let id = started(&store, &new(acme, NUMBER, 0)).await;
    for tries_left in (0..5).rev() {
        assert_eq!(
            guess(&store, acme, id, WRONG, 1).await,
            Some(wrong(tries_left))
        );
    }
    let failed = Some(over(VerificationState::Failed));
    assert_eq!(guess(&store, acme, id, RIGHT, 1).await, failed);
    let late = started(&store, &new(acme, NUMBER, 2)).await;
    let expired = Some(over(VerificationState::Expired));
    assert_eq!(guess(&store, acme, late, RIGHT, 602).await, expired);
}

async fn concurrent_guesses_are_counted(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let id = started(&store, &new(acme, NUMBER, 0)).await;
    let mut tasks = JoinSet::new();
    for _ in 0..12 {
        let store = store.clone();
        tasks.spawn(async move { guess(&store, acme, id, WRONG, 1).await });
    }
    let judged = tasks.join_all().await;
    let checked = judged
        .iter()
        .filter(|judged| matches!(judged, Some(Judgement::Wrong { .. })));
    assert_eq!(checked.count(), 5, "{judged:?}");
    let state = state(&store, acme, id).await;
    assert_eq!(state, VerificationState::Failed);
}

async fn a_pending_code_is_replaced_after_half_a_minute(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let first = started(&store, &new(acme, NUMBER, 0)).await;
    let too_soon = start(&store, &new(acme, NUMBER, 29)).await;
    assert_eq!(too_soon, Started::TooSoon(first));
    started(&store, &new(other, NUMBER, 1)).await;
    let second = started(&store, &new(acme, NUMBER, 30)).await;
    assert_ne!(second, first);
    let expired = Some(over(VerificationState::Expired));
    assert_eq!(guess(&store, acme, first, RIGHT, 31).await, expired);
    let right = Some(Judgement::Right);
    assert_eq!(guess(&store, acme, second, RIGHT, 31).await, right);
}

async fn one_of_many_concurrent_codes_is_sent(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        tasks.spawn(async move { start(&store, &new(acme, NUMBER, 0)).await });
    }
    let started = tasks.join_all().await;
    let is_new = |started: &&Started| matches!(started, Started::New(_));
    assert_eq!(started.iter().filter(is_new).count(), 1, "{started:?}");
    let is_too_soon = |started: &&Started| matches!(started, Started::TooSoon(_));
    assert_eq!(started.iter().filter(is_too_soon).count(), 7, "{started:?}");
}

/// Codes of verifications and PINs of sender IDs have one limit.
async fn codes_count_together_with_pins(store: Arc<dyn Store>) {
    let mut accounts = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        accounts.push(create_account(&store, name).await);
    }
    let mut ids = Vec::new();
    for (second, account) in (0..).zip(&accounts[..3]) {
        ids.push(started(&store, &new(*account, NUMBER, second)).await);
    }
    for (second, account) in (3..).zip(&accounts[3..5]) {
        let pin = super::codes::number(*account, NUMBER, second);
        let registered = store.register_sender(&pin).await.expect("answers");
        assert!(matches!(registered, Registered::New(_)), "{registered:?}");
    }
    let capped = CodeCapReached { until: at(HOUR) };
    let refused = start(&store, &new(accounts[5], NUMBER, 10)).await;
    assert_eq!(refused, Started::CodeCapReached(capped));
    let renewed = start(&store, &new(accounts[0], NUMBER, 40)).await;
    assert_eq!(renewed, Started::CodeCapReached(capped));
    let first = state(&store, accounts[0], ids[0]).await;
    assert_eq!(
        first,
        VerificationState::Pending,
        "a refusal changes nothing"
    );
    let pin = super::codes::number(accounts[5], NUMBER, 10);
    let registered = store.register_sender(&pin).await.expect("answers");
    assert_eq!(registered, Registered::CodeCapReached(capped));
}

async fn an_account_has_a_daily_limit(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let limit = "UPDATE account SET codes_per_day = 2 WHERE name = 'acme'";
    database.execute(limit).await;
    started(&store, &new(acme, "+37120000001", 0)).await;
    started(&store, &new(acme, "+37120000002", 1)).await;
    let refused = start(&store, &new(acme, "+37120000003", 2)).await;
    let capped = CodeCapReached { until: at(DAY) };
    assert_eq!(refused, Started::CodeCapReached(capped));
}

async fn a_code_that_was_not_sent_does_not_count(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    for second in 0..8 {
        let id = started(&store, &new(acme, NUMBER, second)).await;
        store.withdraw_verification(id).await.expect("answers");
        assert_eq!(find(&store, acme, id).await, None);
    }
    let id = started(&store, &new(acme, NUMBER, 9)).await;
    guess(&store, acme, id, RIGHT, 10).await;
    store.withdraw_verification(id).await.expect("answers");
    let approved = state(&store, acme, id).await;
    assert_eq!(approved, VerificationState::Approved, "only pending ones");
}

/// A second code that the account cannot pay for leaves the first one valid.
async fn a_code_that_was_not_sent_replaces_none(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let first = started(&store, &new(acme, NUMBER, 0)).await;
    let others = started(&store, &new(other, NUMBER, 1)).await;
    let second = started(&store, &new(acme, NUMBER, 60)).await;
    assert_eq!(state(&store, acme, first).await, VerificationState::Expired);
    for _ in 0..2 {
        store.withdraw_verification(second).await.expect("answers");
    }
    assert_eq!(state(&store, acme, first).await, VerificationState::Pending);
    let judged = guess(&store, acme, first, RIGHT, 70).await;
    assert_eq!(judged, Some(Judgement::Right));
    // The code before the one that was approved is not restored.
    let third = started(&store, &new(other, NUMBER, 80)).await;
    guess(&store, other, third, RIGHT, 81).await;
    let fourth = started(&store, &new(other, NUMBER, 120)).await;
    store.withdraw_verification(fourth).await.expect("answers");
    let replaced = state(&store, other, others).await;
    assert_eq!(replaced, VerificationState::Expired);
}

async fn a_prefix_whose_codes_are_not_entered_is_slowed(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let to = |n: i64| format!("+371200{n:05}");
    let (lmt, lv) = (Network::new("247", "01"), Country::parse("LV").ok());
    let mut ids = Vec::new();
    for n in 0..50 {
        ids.push(started(&store, &new(acme, &to(n), n)).await);
    }
    let slowed = Started::Slowed(CodeCapReached { until: at(49 + 60) });
    assert_eq!(start(&store, &new(acme, &to(50), 50)).await, slowed);
    started(&store, &new(other, &to(50), 50)).await;
    let elsewhere = NewVerification {
        prefix: 371_201,
        network: None,
        ..new(acme, &to(51), 50)
    };
    started(&store, &elsewhere).await;
    let expected = |approved| {
        let counted = |account, prefix, network: Option<Network>, sent, approved| {
            let conversion = Conversion { sent, approved };
            PrefixConversion {
                account,
                prefix,
                network,
                country: lv.filter(|_| network.is_none()),
                conversion,
                newest: conversion,
            }
        };
        [
            counted(acme, 371_200, lmt, 50, approved),
            counted(acme, 371_201, None, 1, 0),
            counted(other, 371_200, lmt, 1, 0),
        ]
    };
    let list = async |since, limit| {
        let listed = store.list_conversions(None, at(since), limit).await;
        listed.expect("the store answers")
    };
    assert_eq!(list(-1, 10).await, expected(0));
    for (account, counts) in [(None, [51, 1]), (Some(acme), [50, 1])] {
        let networks = store.list_network_conversions(account, at(-1), 10).await;
        let of_place = |(network, country, sent)| NetworkConversion {
            network,
            country,
            conversion: Conversion { sent, approved: 0 },
        };
        let expected = [(lmt, None, counts[0]), (None, lv, counts[1])].map(of_place);
        assert_eq!(networks.expect("answers"), expected, "{account:?}");
        let prefixes = store.list_conversions(account, at(-1), 10).await;
        let prefixes = prefixes.expect("answers").len();
        assert_eq!(prefixes, if account.is_none() { 3 } else { 2 });
    }

    for id in &ids[..3] {
        guess(&store, acme, *id, RIGHT, 51).await;
    }
    started(&store, &new(acme, &to(50), 52)).await;
    assert_eq!(list(0, 1).await[0].conversion.approved, 2, "not the first");
    assert_eq!(list(-1, 10).await.len(), 3);
    assert_eq!(list(DAY, 10).await, []);
}

/// The price is that of the time when the code was sent. It is charged once, by the right code, even without money.
async fn the_right_code_is_charged_once(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let before = balance(&store, acme).await;
    let price = Money::from_micros(before + 20_000);
    let rules = |verify_price| SpendingRules {
        verify_price,
        ..SpendingRules::default()
    };
    let set = async |price| {
        let set = store.set_rules(acme, None, &rules(price)).await;
        assert!(set.expect("answers"));
    };
    let free = started(&store, &new(acme, "+37120000001", 0)).await;
    set(price).await;
    let paid = started(&store, &new(acme, "+37120000002", 0)).await;
    set(Money::from_micros(1)).await;
    guess(&store, acme, free, RIGHT, 1).await;
    guess(&store, acme, paid, WRONG, 1).await;
    assert_eq!(balance(&store, acme).await, before, "nothing is charged");

    let mut guesses = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        guesses.spawn(async move { guess(&store, acme, paid, RIGHT, 2).await });
    }
    let judged = guesses.join_all().await;
    let right = judged
        .iter()
        .filter(|one| **one == Some(Judgement::Right))
        .count();
    assert_eq!(right, 1, "{judged:?}");
    assert_eq!(balance(&store, acme).await, -20_000);
    assert_balanced(&store).await;
    let found = find(&store, acme, paid).await.expect("stored");
    assert_eq!((found.charged(), found.tries), (price, 1));
    let ledger = store.list_ledger(acme, None, 1).await.expect("answers");
    let newest = (ledger[0].kind, ledger[0].messages);
    assert_eq!(newest, (EntryKind::Verification, 1));
    let (always, never) = (at(-1_000_000_000), at(3_000_000_000));
    let totals = store.ledger_totals(acme, always, never).await;
    let totals = totals.expect("answers");
    assert_eq!(totals.verifications.micros(), -before - 20_000);
    assert_eq!(totals.approved_verifications, 1);
    assert_eq!(totals.closing().micros(), -20_000);
}

async fn verifications_are_listed_and_found_by_their_key(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let keyed = |number, second, key| NewVerification {
        key,
        ..new(acme, number, second)
    };
    let first = started(&store, &keyed("+37120000001", 0, Some([7; 32]))).await;
    let second = started(&store, &keyed("+37120000001", 30, Some([7; 32]))).await;
    let third = started(&store, &keyed("+37120000002", 31, None)).await;
    started(&store, &new(other, "+37120000003", 31)).await;
    let found = async |account, key| {
        let found = store.find_keyed_verification(account, &key).await;
        found.expect("answers").map(|one| one.id)
    };
    assert_eq!(found(acme, [7; 32]).await, Some(second), "the newest");
    assert_eq!(found(acme, [8; 32]).await, None);
    assert_eq!(found(other, [7; 32]).await, None);
    let list = async |before, limit| {
        let listed = store.list_verifications(acme, before, limit).await;
        let listed = listed.expect("answers").into_iter();
        listed.map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 2).await, [third, second]);
    assert_eq!(list(Some(second), 2).await, [first]);
}

async fn old_verifications_are_pruned(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let old = started(&store, &new(acme, "+37120000001", 0)).await;
    let middle = started(&store, &new(acme, "+37120000002", 1)).await;
    let young = started(&store, &new(acme, "+37120000003", 2)).await;
    let prune = async |limit| store.prune_verifications(at(1), limit).await;
    assert_eq!(prune(1).await.expect("answers"), 1);
    assert_eq!(find(&store, acme, old).await, None, "the oldest first");
    assert_eq!(prune(9).await.expect("answers"), 1);
    assert_eq!(find(&store, acme, middle).await, None);
    assert!(find(&store, acme, young).await.is_some());

    let number = Msisdn::parse("+37120000003").expect("a number");
    let of_number = store.list_verifications_of(&number, 10).await;
    let ids: Vec<VerificationId> = of_number
        .expect("the store answers")
        .iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(ids, [young]);
    store.erase_verifications(&number).await.expect("answers");
    assert_eq!(find(&store, acme, young).await, None);
}

on_both_stores!(
    a_verification_is_stored_and_approved_once,
    five_wrong_guesses_end_it,
    concurrent_guesses_are_counted,
    a_pending_code_is_replaced_after_half_a_minute,
    one_of_many_concurrent_codes_is_sent,
    codes_count_together_with_pins,
    a_code_that_was_not_sent_does_not_count,
    a_code_that_was_not_sent_replaces_none,
    a_prefix_whose_codes_are_not_entered_is_slowed,
    the_right_code_is_charged_once,
    verifications_are_listed_and_found_by_their_key,
    old_verifications_are_pruned,
);

mod databases {
    use super::an_account_has_a_daily_limit;

    on_both_databases!(an_account_has_a_daily_limit);
}
