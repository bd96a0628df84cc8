//! [`AccountFunds::charge`] defines which messages an account can pay for. `PostgreSQL` decides the same inside a
//! statement, for a whole batch at once, so both stores are held to the definition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::Money;
use domain::billing::{AccountFunds, SpendingRules, day_of};
use domain::message::Submission;
use domain::ports::{Accepted, Store};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;

use super::money::{START, assert_balanced, balance, priced};
use super::sample::{accept, at, create_account, submission};

on_both_stores!(every_batch_is_charged_as_the_rule_says);

const DAY_S: i64 = 24 * 3600;

#[derive(Debug, Clone)]
struct Case {
    balance: i64,
    credit_limit: i64,
    daily_cap: Option<i64>,
    /// The batches: a price and a day for each submission.
    batches: Vec<Vec<(i64, i64)>>,
}

fn cases() -> impl Strategy<Value = Case> {
    let days = prop_oneof![4 => Just(None), 1 => (0_i64..3).prop_map(Some)];
    let submission = (0_i64..400, days);
    let batch = (0_i64..3, vec(submission, 1..5)).prop_map(|(day, submissions)| {
        let of_day = |(price, own): (i64, Option<i64>)| (price, own.unwrap_or(day));
        submissions.into_iter().map(of_day).collect()
    });
    let rules = (-100_i64..1_200, 0_i64..300, option::of(0_i64..700));
    (rules, vec(batch, 1..8)).prop_map(|((balance, credit_limit, daily_cap), batches)| Case {
        balance,
        credit_limit,
        daily_cap,
        batches,
    })
}

async fn every_batch_is_charged_as_the_rule_says(store: Arc<dyn Store>) {
    let runtime = Handle::current();
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let tested = tokio::task::spawn_blocking(move || {
        let accounts = AtomicU64::new(1);
        TestRunner::new(config).run(&cases(), |case| {
            let number = accounts.fetch_add(1, Ordering::Relaxed);
            runtime.block_on(check(&store, number, case));
            Ok(())
        })
    });
    tested
        .await
        .expect("it does not panic")
        .expect("the store follows the rule");
}

async fn check(store: &Arc<dyn Store>, number: u64, case: Case) {
    let owner = create_account(store, &format!("account {number}")).await;
    let change = Money::from_micros(case.balance - START);
    store
        .credit(owner, change, None, at(0))
        .await
        .expect("answers");
    let rules = SpendingRules {
        credit_limit: Money::from_micros(case.credit_limit),
        daily_cap: case.daily_cap.map(Money::from_micros),
        ..SpendingRules::default()
    };
    store.set_rules(owner, None, &rules).await.expect("answers");
    let mut funds = AccountFunds {
        balance: Money::from_micros(case.balance),
        credit_limit: rules.credit_limit,
        daily_cap: rules.daily_cap,
        ..AccountFunds::default()
    };
    let mut next_id = 1_000_000 * number;
    for prices in case.batches {
        let batch = prices.into_iter().map(|(price, day)| {
            next_id += 1;
            Submission {
                accepted_at: at(day * DAY_S),
                ..priced(submission(next_id, 1), owner, price)
            }
        });
        let batch: Vec<Submission> = batch.collect();
        let expected = batch.iter().map(|submission| {
            let charged = funds.charge(submission.cost(), day_of(submission.accepted_at));
            charged.map_or_else(Accepted::NotPaid, |()| Accepted::Stored)
        });
        let expected: Vec<Accepted> = expected.collect();
        assert_eq!(accept(store, batch).await, expected);
        assert_eq!(balance(store, owner).await, funds.balance.micros());
        let stored = store.find_funds(owner).await.expect("answers");
        assert_eq!(stored, Some(funds));
    }
    assert_balanced(store).await;
}
