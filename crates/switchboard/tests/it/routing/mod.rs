//! Which carrier gets a message, and what happens when it cannot accept it. The tests run the use cases on a real
//! store, with fake carriers.

mod backlog;
mod fixture;

use domain::delivery::CarrierAnswer;
use domain::ports::Health;
use domain::{MessageState, Outcome};
use engine::sending::routing::{Choice, Condition, Rule};
use engine::sending::submit::SubmitError;

use fixture::{FakeCarrier, Fixture, code, wait_for};

const TO: &str = "+37120000001";

/// Capacity of the memory in messages, over all carriers.
const HELD: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_carrier_gets_what_the_first_defers() {
    let (fixture, alpha, beta) = (
        Fixture::open(HELD).await,
        FakeCarrier::new("alpha"),
        FakeCarrier::new("beta"),
    );
    alpha.set_answer(CarrierAnswer::NotNow(code(31)));
    fixture.set_carriers(&[&alpha, &beta], Vec::new()).await;
    let id = fixture.send(TO).await;
    wait_for("beta has it", async || (beta.count() == 1).then_some(())).await;
    assert_eq!(alpha.count(), 1, "it gets the message first, once");
    wait_for("it is sent", async || {
        (fixture.state(id).await == MessageState::Sent).then_some(())
    })
    .await;
    fixture.deliver("beta", id).await;
    assert_eq!(fixture.outcome(id).await, Outcome::Delivered);
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_that_is_down_gets_no_messages() {
    let (fixture, alpha, beta) = (
        Fixture::open(HELD).await,
        FakeCarrier::new("alpha"),
        FakeCarrier::new("beta"),
    );
    alpha.set_health(Health::Down);
    fixture.set_carriers(&[&alpha, &beta], Vec::new()).await;
    for _ in 0..20 {
        fixture.send(TO).await;
    }
    wait_for("beta has all", async || (beta.count() == 20).then_some(())).await;
    assert_eq!(alpha.count(), 0);
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_wait_for_a_carrier_that_is_down_go_by_another() {
    let (fixture, alpha, beta) = (
        Fixture::open(HELD).await,
        FakeCarrier::new("alpha"),
        FakeCarrier::new("beta"),
    );
    // Both are down, so everything waits for the first.
    alpha.set_health(Health::Down);
    beta.set_health(Health::Down);
    fixture.set_carriers(&[&alpha, &beta], Vec::new()).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(fixture.send(TO).await);
    }
    for id in &ids {
        assert_eq!(fixture.state(*id).await, MessageState::Queued);
    }
    assert_eq!((alpha.count(), beta.count()), (0, 0));
    beta.set_health(Health::Up);
    wait_for("beta has all", async || (beta.count() == 20).then_some(())).await;
    assert_eq!(alpha.count(), 0);
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_messages_than_fit_in_memory_survive_an_outage() {
    let (fixture, alpha) = (Fixture::open(30).await, FakeCarrier::new("alpha"));
    alpha.set_health(Health::Down);
    fixture.set_carriers(&[&alpha], Vec::new()).await;
    for _ in 0..200 {
        fixture.send(TO).await;
    }
    alpha.set_health(Health::Up);
    wait_for("alpha has all", async || {
        (alpha.count() >= 200).then_some(())
    })
    .await;
    let submitted = alpha.submitted.lock().expect("no holder panics").clone();
    let mut distinct = submitted.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((distinct.len(), submitted.len()), (200, 200), "each once");
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strained_carrier_holds_one_window_and_the_rest_goes_elsewhere() {
    let (fixture, beta) = (Fixture::open(HELD).await, FakeCarrier::new("beta"));
    let alpha = FakeCarrier::with_window("alpha", 1);
    alpha.set_health(Health::Strained);
    alpha.set_answer(CarrierAnswer::NotNow(code(31)));
    fixture.set_carriers(&[&alpha, &beta], Vec::new()).await;
    for _ in 0..50 {
        fixture.send(TO).await;
    }
    wait_for("beta has all", async || (beta.count() == 50).then_some(())).await;
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_end_a_message_only_when_no_other_may_take_it() {
    let cases = [
        (
            "refused by the first",
            CarrierAnswer::Refused(code(53)),
            None,
            53,
        ),
        (
            "declined by all",
            CarrierAnswer::Declined(code(12)),
            Some(CarrierAnswer::Declined(code(20))),
            20,
        ),
    ];
    for (name, first, second, expected) in cases {
        let (fixture, alpha, beta) = (
            Fixture::open(HELD).await,
            FakeCarrier::new("alpha"),
            FakeCarrier::new("beta"),
        );
        alpha.set_answer(first);
        if let Some(second) = second.clone() {
            beta.set_answer(second);
        }
        fixture.set_carriers(&[&alpha, &beta], Vec::new()).await;
        let id = fixture.send(TO).await;
        let outcome = fixture.outcome(id).await;
        assert_eq!(outcome, Outcome::Failed(code(expected)), "{name}");
        assert_eq!(beta.count(), usize::from(second.is_some()), "{name}");
        fixture.engine.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_one_carrier_declines_and_another_defers_is_retried() {
    let (fixture, alpha, beta) = (
        Fixture::open(HELD).await,
        FakeCarrier::new("alpha"),
        FakeCarrier::new("beta"),
    );
    alpha.set_answer(CarrierAnswer::Declined(code(20)));
    beta.set_answer(CarrierAnswer::NotNow(code(91)));
    fixture.set_carriers(&[&alpha, &beta], Vec::new()).await;
    let id = fixture.send(TO).await;
    wait_for("beta has it", async || (beta.count() == 1).then_some(())).await;
    beta.set_answer(CarrierAnswer::Taken(Vec::new()));
    wait_for("it is sent", async || {
        (fixture.state(id).await == MessageState::Sent).then_some(())
    })
    .await;
    assert_eq!(
        (alpha.count(), beta.count()),
        (2, 2),
        "each gets the message again"
    );
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_without_a_route_is_refused_and_not_charged() {
    let (fixture, alpha) = (Fixture::open(HELD).await, FakeCarrier::new("alpha"));
    let rule = Rule {
        when: Condition {
            prefixes: vec!["371".to_owned()],
            ..Condition::default()
        },
        carriers: vec![0],
        choice: Choice::Order,
        ported_numbers: false,
    };
    fixture.set_carriers(&[&alpha], vec![rule]).await;
    let refused = fixture.try_send("+4915112345678").await;
    let Err(SubmitError::Invalid(invalid)) = refused else {
        panic!("{refused:?}")
    };
    assert!(invalid.to_string().contains("no carrier"), "{invalid}");
    fixture.send(TO).await;
    wait_for("alpha has it", async || (alpha.count() == 1).then_some(())).await;
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_for_an_unknown_account_matches_no_message() {
    let (fixture, alpha, beta) = (
        Fixture::open(HELD).await,
        FakeCarrier::new("alpha"),
        FakeCarrier::new("beta"),
    );
    let rule = |account: Option<&str>, carrier| Rule {
        when: Condition {
            accounts: account
                .iter()
                .map(|name| name.parse().expect("a name"))
                .collect(),
            ..Condition::default()
        },
        carriers: vec![carrier],
        choice: Choice::Order,
        ported_numbers: false,
    };
    let rules = vec![
        rule(Some("nobody"), 0),
        rule(Some("acme"), 1),
        rule(None, 0),
    ];
    fixture.set_carriers(&[&alpha, &beta], rules).await;
    fixture.send(TO).await;
    wait_for("beta has it", async || (beta.count() == 1).then_some(())).await;
    assert_eq!(alpha.count(), 0);
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn carriers_change_while_messages_wait_and_none_is_lost() {
    let (fixture, alpha, beta) = (
        Fixture::open(HELD).await,
        FakeCarrier::new("alpha"),
        FakeCarrier::new("beta"),
    );
    alpha.set_health(Health::Down);
    fixture.set_carriers(&[&alpha], Vec::new()).await;
    for _ in 0..50 {
        fixture.send(TO).await;
    }
    fixture.set_carriers(&[&beta], Vec::new()).await;
    wait_for("beta has all", async || (beta.count() == 50).then_some(())).await;
    wait_for("alpha has stopped", async || {
        alpha
            .stopped
            .lock()
            .expect("no holder panics")
            .then_some(())
    })
    .await;
    // A carrier that stays is not restarted.
    fixture.set_carriers(&[&beta], Vec::new()).await;
    fixture.send(TO).await;
    wait_for("beta continues", async || {
        (beta.count() == 51).then_some(())
    })
    .await;
    assert!(!*beta.stopped.lock().expect("no holder panics"));
    assert_eq!(alpha.count(), 0);
    fixture.engine.stop().await;
    assert!(
        *beta.stopped.lock().expect("no holder panics"),
        "the engine stops its carriers"
    );
}
