//! Which carrier a message goes by, and what happens when that one cannot take it: the use cases on a real store, with
//! carriers that do as they are told.

mod backlog;
mod house;

use domain::delivery::CarrierAnswer;
use domain::ports::Health;
use domain::{MessageState, Outcome};
use engine::sending::routing::{Choice, Condition, Rule};
use engine::sending::submit::SubmitError;

use house::{House, Puppet, code, until};

const TO: &str = "+37120000001";

/// Room in memory for so many messages, over all carriers.
const HELD: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_carrier_takes_what_the_first_cannot_take_now() {
    let (house, alpha, beta) = (
        House::open(HELD).await,
        Puppet::new("alpha"),
        Puppet::new("beta"),
    );
    alpha.answer(CarrierAnswer::NotNow(code(31)));
    house.equip(&[&alpha, &beta], Vec::new()).await;
    let id = house.send(TO).await;
    until("beta has it", async || (beta.count() == 1).then_some(())).await;
    assert_eq!(alpha.count(), 1, "it was asked first, once");
    until("it is sent", async || {
        (house.state(id).await == MessageState::Sent).then_some(())
    })
    .await;
    house.deliver("beta", id).await;
    assert_eq!(house.outcome(id).await, Outcome::Delivered);
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_that_is_down_is_not_asked() {
    let (house, alpha, beta) = (
        House::open(HELD).await,
        Puppet::new("alpha"),
        Puppet::new("beta"),
    );
    alpha.set(Health::Down);
    house.equip(&[&alpha, &beta], Vec::new()).await;
    for _ in 0..20 {
        house.send(TO).await;
    }
    until("beta has all", async || (beta.count() == 20).then_some(())).await;
    assert_eq!(alpha.count(), 0);
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_carrier_that_goes_down_goes_by_another() {
    let (house, alpha, beta) = (
        House::open(HELD).await,
        Puppet::new("alpha"),
        Puppet::new("beta"),
    );
    // Both are down, so everything waits for the first.
    alpha.set(Health::Down);
    beta.set(Health::Down);
    house.equip(&[&alpha, &beta], Vec::new()).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(house.send(TO).await);
    }
    for id in &ids {
        assert_eq!(house.state(*id).await, MessageState::Queued);
    }
    assert_eq!((alpha.count(), beta.count()), (0, 0));
    beta.set(Health::Up);
    until("beta has all", async || (beta.count() == 20).then_some(())).await;
    assert_eq!(alpha.count(), 0);
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_memory_holds_waits_out_an_outage() {
    let (house, alpha) = (House::open(30).await, Puppet::new("alpha"));
    alpha.set(Health::Down);
    house.equip(&[&alpha], Vec::new()).await;
    for _ in 0..200 {
        house.send(TO).await;
    }
    alpha.set(Health::Up);
    until("alpha has all", async || {
        (alpha.count() >= 200).then_some(())
    })
    .await;
    let asked = alpha.asked.lock().expect("no holder panics").clone();
    let mut distinct = asked.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((distinct.len(), asked.len()), (200, 200), "each once");
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strained_carrier_keeps_a_window_and_the_rest_goes_elsewhere() {
    let (house, beta) = (House::open(HELD).await, Puppet::new("beta"));
    let alpha = Puppet::with_window("alpha", 1);
    alpha.set(Health::Strained);
    alpha.answer(CarrierAnswer::NotNow(code(31)));
    house.equip(&[&alpha, &beta], Vec::new()).await;
    for _ in 0..50 {
        house.send(TO).await;
    }
    until("beta has all", async || (beta.count() == 50).then_some(())).await;
    house.engine.stop().await;
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
        let (house, alpha, beta) = (
            House::open(HELD).await,
            Puppet::new("alpha"),
            Puppet::new("beta"),
        );
        alpha.answer(first);
        if let Some(second) = second.clone() {
            beta.answer(second);
        }
        house.equip(&[&alpha, &beta], Vec::new()).await;
        let id = house.send(TO).await;
        let outcome = house.outcome(id).await;
        assert_eq!(outcome, Outcome::Failed(code(expected)), "{name}");
        assert_eq!(beta.count(), usize::from(second.is_some()), "{name}");
        house.engine.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declined_here_and_not_now_there_is_tried_again() {
    let (house, alpha, beta) = (
        House::open(HELD).await,
        Puppet::new("alpha"),
        Puppet::new("beta"),
    );
    alpha.answer(CarrierAnswer::Declined(code(20)));
    beta.answer(CarrierAnswer::NotNow(code(91)));
    house.equip(&[&alpha, &beta], Vec::new()).await;
    let id = house.send(TO).await;
    until("beta was asked", async || (beta.count() == 1).then_some(())).await;
    beta.answer(CarrierAnswer::Taken(Vec::new()));
    until("it is sent", async || {
        (house.state(id).await == MessageState::Sent).then_some(())
    })
    .await;
    assert_eq!(
        (alpha.count(), beta.count()),
        (2, 2),
        "each was asked again"
    );
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_route_fits_is_refused_and_costs_nothing() {
    let (house, alpha) = (House::open(HELD).await, Puppet::new("alpha"));
    let rule = Rule {
        when: Condition {
            prefixes: vec!["371".to_owned()],
            ..Condition::default()
        },
        carriers: vec![0],
        choice: Choice::Order,
    };
    house.equip(&[&alpha], vec![rule]).await;
    let refused = house.try_send("+4915112345678").await;
    let Err(SubmitError::Invalid(invalid)) = refused else {
        panic!("{refused:?}")
    };
    assert!(invalid.to_string().contains("no carrier"), "{invalid}");
    house.send(TO).await;
    until("alpha has it", async || (alpha.count() == 1).then_some(())).await;
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_for_an_account_that_is_not_there_fits_nobody() {
    let (house, alpha, beta) = (
        House::open(HELD).await,
        Puppet::new("alpha"),
        Puppet::new("beta"),
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
    };
    let rules = vec![
        rule(Some("nobody"), 0),
        rule(Some("acme"), 1),
        rule(None, 0),
    ];
    house.equip(&[&alpha, &beta], rules).await;
    house.send(TO).await;
    until("beta has it", async || (beta.count() == 1).then_some(())).await;
    assert_eq!(alpha.count(), 0);
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn carriers_change_while_messages_wait_and_none_is_lost() {
    let (house, alpha, beta) = (
        House::open(HELD).await,
        Puppet::new("alpha"),
        Puppet::new("beta"),
    );
    alpha.set(Health::Down);
    house.equip(&[&alpha], Vec::new()).await;
    for _ in 0..50 {
        house.send(TO).await;
    }
    house.equip(&[&beta], Vec::new()).await;
    until("beta has all", async || (beta.count() == 50).then_some(())).await;
    until("alpha has stopped", async || {
        alpha
            .stopped
            .lock()
            .expect("no holder panics")
            .then_some(())
    })
    .await;
    // The same one again goes on as it is.
    house.equip(&[&beta], Vec::new()).await;
    house.send(TO).await;
    until("beta goes on", async || (beta.count() == 51).then_some(())).await;
    assert!(!*beta.stopped.lock().expect("no holder panics"));
    assert_eq!(alpha.count(), 0);
    house.engine.stop().await;
    assert!(
        *beta.stopped.lock().expect("no holder panics"),
        "in order, at the end"
    );
}
