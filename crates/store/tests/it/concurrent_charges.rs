//! Concurrent charges: several nodes, each with several callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::billing::SpendingRules;
use domain::delivery::SendResult;
use domain::message::Submission;
use domain::ports::{Accepted, Store};
use domain::{AccountId, Channel, Code, Money, Outcome};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::fixture::Database;
use super::money::{assert_balanced, balance, priced};
use super::sample::{accept, at, create_account, keyed, message, scheduled, submission};
use super::steps::{first_result, held, join, settle};

mod one_store {
    on_both_stores!(any_sequence_of_changes_matches_the_model);
    use super::any_sequence_of_changes_matches_the_model;
}

on_both_databases!(
    no_more_is_stored_than_the_balance_covers,
    no_more_reaches_a_recipient_than_the_limit_allows,
    concurrent_changes_keep_the_ledger_consistent,
);

on_a_serializable_database!(
    no_more_is_stored_than_the_balance_covers,
    no_more_reaches_a_recipient_than_the_limit_allows,
);

on_a_pooled_database!(
    no_more_is_stored_than_the_balance_covers,
    no_more_reaches_a_recipient_than_the_limit_allows,
    concurrent_changes_keep_the_ledger_consistent,
);

const NODES: u64 = 3;
const CALLERS: u64 = 8;
const REQUESTS: u64 = 12;

/// All callers of all nodes send at once. Returns how many requests were stored.
async fn send_all(
    database: &Database,
    request: impl Fn(u64) -> Submission + Send + Copy + 'static,
) -> u64 {
    let mut callers = JoinSet::new();
    for node in 0..NODES {
        let store = database.open().await;
        for caller in 0..CALLERS {
            let store = store.clone();
            callers.spawn(async move {
                let mut stored = 0;
                for number in 0..REQUESTS {
                    let first = 10 * (number + REQUESTS * (caller + CALLERS * node)) + 1;
                    let outcomes = accept(&store, vec![request(first)]).await;
                    stored += u64::from(outcomes == [Accepted::Stored]);
                }
                stored
            });
        }
    }
    callers.join_all().await.into_iter().sum()
}

async fn no_more_is_stored_than_the_balance_covers(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let rules = SpendingRules {
        credit_limit: Money::from_micros(654_322),
        ..SpendingRules::default()
    };
    store.set_rules(acme, None, &rules).await.expect("answers");
    // The account can pay for 13 000 000 micros: 130 of the 288 requests.
    let stored = send_all(&database, move |first| {
        priced(submission(first, 2), acme, 50_000)
    })
    .await;
    assert_eq!(stored, 130);
    assert_eq!(balance(&store, acme).await, -654_322);
    assert_balanced(&store).await;
}

async fn no_more_reaches_a_recipient_than_the_limit_allows(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let rules = SpendingRules {
        per_recipient_hour: Some(17),
        ..SpendingRules::default()
    };
    store.set_rules(acme, None, &rules).await.expect("answers");
    let to = submission(1, 1).recipients[0].to;
    let request = move |first| {
        let mut request = priced(submission(first, 1), acme, 10);
        request.recipients[0].to = to;
        request
    };
    assert_eq!(send_all(&database, request).await, 17);
    assert_balanced(&store).await;
}

/// Charges, refused charges, keys, credits, refunds and cancellations of two accounts, by several workers at once.
async fn concurrent_changes_keep_the_ledger_consistent(database: Database) {
    let store = database.open().await;
    let owners = [
        create_account(&store, "acme").await,
        create_account(&store, "other").await,
    ];
    let mut workers = JoinSet::new();
    for worker in 0..6_u64 {
        let store = database.open().await;
        workers.spawn(work(store, owners, worker));
    }
    let spent: i64 = workers.join_all().await.into_iter().sum();
    let left = balance(&store, owners[0]).await + balance(&store, owners[1]).await;
    assert_eq!(left, 2 * 12_345_678 - spent);
    assert_balanced(&store).await;
}

/// Returns what one worker spent from both accounts together.
async fn work(store: Arc<dyn Store>, owners: [AccountId; 2], worker: u64) -> i64 {
    const PRICE: i64 = 150_000;
    let node = join(&store).await;
    let route_down = Outcome::Failed(Code::new(30).expect("a code"));
    let mut spent = 0;
    for round in 0..20_u64 {
        let first = 100_000 * (worker + 1) + 100 * round;
        let owner = owners[usize::try_from((worker + round) % 2).expect("0 or 1")];
        let batch = vec![
            priced(held(first, node), owner, PRICE),
            priced(
                keyed(
                    first + 10,
                    u8::try_from(worker * 20 + round).expect("fits"),
                    1,
                ),
                owner,
                PRICE,
            ),
            priced(scheduled(first + 20, 9_000_000), owners[0], PRICE),
            priced(held(first + 30, node), owners[1], PRICE),
        ];
        let outcomes = accept(&store, batch.clone()).await;
        for (sent, outcome) in batch.iter().zip(&outcomes) {
            if *outcome == Accepted::Stored {
                spent += sent.cost().micros();
            }
        }
        if outcomes[0] == Accepted::Stored {
            settle(
                &store,
                node,
                vec![first_result(first, SendResult::Over(route_down))],
            )
            .await;
            spent -= PRICE;
        }
        if outcomes[2] == Accepted::Stored {
            store
                .cancel(owners[0], message(first + 20), at(1))
                .await
                .expect("answers");
            spent -= PRICE;
        }
        if round % 5 == 0 {
            let credit = Money::from_micros(33);
            store
                .credit(owner, credit, None, at(2))
                .await
                .expect("answers");
            spent -= 33;
        }
    }
    spent
}

/// One change of an account's money.
#[derive(Debug, Clone)]
enum Step {
    /// Accepts messages at these prices, in one batch.
    Accept(Vec<i64>),
    /// Ends the oldest waiting message with this outcome.
    End(Outcome),
    Credit(i64),
    Limit(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let code = |number| Outcome::Failed(Code::new(number).expect("a code"));
    let outcome = prop_oneof![
        Just(Outcome::Delivered),
        Just(Outcome::Expired),
        prop::sample::select(vec![code(2), code(30), code(43), code(53)]),
    ];
    prop_oneof![
        3 => vec(0_i64..400, 1..5).prop_map(Step::Accept),
        3 => outcome.prop_map(Step::End),
        1 => (-200_i64..600).prop_map(Step::Credit),
        1 => (0_i64..300).prop_map(Step::Limit),
    ]
}

async fn any_sequence_of_changes_matches_the_model(store: Arc<dyn Store>) {
    let runtime = Handle::current();
    let config = Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = tokio::task::spawn_blocking(move || {
        let accounts = AtomicU64::new(1);
        TestRunner::new(config).run(&vec(step(), 1..25), |steps| {
            let number = accounts.fetch_add(1, Ordering::Relaxed);
            runtime.block_on(check(&store, number, steps));
            Ok(())
        })
    });
    outcome
        .await
        .expect("it does not panic")
        .expect("the store agrees with the model");
}

async fn check(store: &Arc<dyn Store>, number: u64, steps: Vec<Step>) {
    let node = join(store).await;
    let owner = create_account(store, &format!("account {number}")).await;
    let (mut expected, mut limit) = (12_345_678, 0);
    // A balance for a few messages only, so that some are refused.
    store
        .credit(owner, Money::from_micros(1_000 - expected), None, at(1))
        .await
        .expect("answers");
    expected = 1_000;
    let mut next = 1_000_000 * number;
    let mut waiting = std::collections::VecDeque::new();
    for step in steps {
        match step {
            Step::Accept(prices) => {
                let batch = prices.iter().map(|&price| {
                    next += 1;
                    priced(held(next, node), owner, price)
                });
                let batch: Vec<Submission> = batch.collect();
                let outcomes = accept(store, batch.clone()).await;
                for ((sent, outcome), price) in batch.iter().zip(outcomes).zip(prices) {
                    let covered = price == 0 || expected + limit >= price;
                    assert_eq!(
                        outcome == Accepted::Stored,
                        covered,
                        "{price} of {expected} + {limit}"
                    );
                    if covered {
                        expected -= price;
                        waiting.push_back((sent.recipients[0].id.get(), price));
                    }
                }
            }
            Step::End(outcome) => {
                let Some((id, price)) = waiting.pop_front() else {
                    continue;
                };
                settle(
                    store,
                    node,
                    vec![first_result(id, SendResult::Over(outcome))],
                )
                .await;
                expected += if outcome.is_refunded(Channel::Sms, false) {
                    price
                } else {
                    0
                };
            }
            Step::Credit(amount) => {
                store
                    .credit(owner, Money::from_micros(amount), None, at(2))
                    .await
                    .expect("answers");
                expected += amount;
            }
            Step::Limit(micros) => {
                let credit_limit = Money::from_micros(micros);
                let rules = SpendingRules {
                    credit_limit,
                    ..SpendingRules::default()
                };
                store.set_rules(owner, None, &rules).await.expect("answers");
                limit = micros;
            }
        }
        assert_eq!(balance(store, owner).await, expected);
    }
    assert_balanced(store).await;
}
