//! What waits for a carrier that is full or down: no write moves it, it keeps its order, accounts share the carrier, and it
//! expires in time.

use domain::delivery::CarrierAnswer;
use domain::ports::Health;
use domain::{Code, MessageId, MessageState, Outcome};
use engine::sending::routing::{Choice, Condition, Rule};
use jiff::SignedDuration;

use super::house::{House, Puppet, Sending, code, until};

const TO_ALPHA: &str = "+37120000001";
const TO_BETA: &str = "+4915112345678";

/// Slots in memory, over all carriers and lanes.
const HELD: usize = 60;

/// The queue rows of messages that no carrier took: owner, number of claims, number of tries.
fn rows(house: &House) -> Vec<(i64, i64, i64)> {
    let rows = house.database.numbers(
        "SELECT owner, CAST(attempt AS BIGINT), CAST(tries AS BIGINT) FROM queue WHERE owner <> -1 ORDER BY id",
        3,
    );
    let number = |value: &Option<i64>| value.expect("not null");
    rows.iter()
        .map(|row| (number(&row[0]), number(&row[1]), number(&row[2])))
        .collect()
}

/// Waits until every message that no node holds is in a pool.
async fn all_pooled(house: &House, least: usize) {
    until("what has no room in memory is in a pool", async || {
        let rows = rows(house);
        let pooled = rows.iter().filter(|row| row.0 < -1).count();
        let is_done = pooled >= least && rows.iter().all(|row| row.0 != 0);
        is_done.then_some(())
    })
    .await;
}

fn by_prefix(prefix: &str, carrier: usize) -> Rule {
    Rule {
        when: Condition {
            prefixes: vec![prefix.to_owned()],
            ..Condition::default()
        },
        carriers: vec![carrier],
        choice: Choice::Order,
    }
}

async fn send_many(house: &House, count: usize, sending: Sending) -> Vec<MessageId> {
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        ids.push(house.send_as(TO_ALPHA, sending).await);
    }
    ids
}

/// The backlog of a full carrier was claimed and put back again and again while another had room, newer messages overtook
/// older ones, and the first throttle then waited for minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_carrier_beside_an_idle_one_costs_no_writes() {
    let (house, beta) = (House::open(2 * HELD).await, Puppet::new("beta"));
    let alpha = Puppet::held_back("alpha");
    let rules = vec![by_prefix("371", 0), by_prefix("49", 1)];
    house.equip(&[&alpha, &beta], rules).await;
    let ids = send_many(&house, 100, Sending::default()).await;
    all_pooled(&house, 50).await;
    until(
        "the oldest are in memory, the others in the pool",
        async || {
            let rows = rows(&house);
            let mut others = rows.iter().skip_while(|row| row.0 > 0);
            others.all(|row| row.0 < -1).then_some(())
        },
    )
    .await;
    let before = rows(&house);

    // Each of these is found by a scan, so there were some.
    let later = Sending {
        scheduled_in: Some(1),
        ..Sending::default()
    };
    for sent in 1..=3 {
        house.send_as(TO_BETA, later).await;
        until("beta has it", async || (beta.count() == sent).then_some(())).await;
    }
    until("only alpha's messages wait", async || {
        (rows(&house).len() == before.len()).then_some(())
    })
    .await;
    assert_eq!(rows(&house), before, "nothing was claimed or put back");
    assert!(before.iter().all(|row| row.1 <= 2), "{before:?}");

    alpha.let_answer(99);
    until("alpha has all", async || {
        (alpha.count() == 100).then_some(())
    })
    .await;
    assert_eq!(alpha.asked(), ids, "in order, each once");

    // The first real throttle: a pause of seconds, whatever the message waited before.
    alpha.answer(CarrierAnswer::NotNow(code(31)));
    alpha.let_answer(1);
    until("it is tried again", async || {
        let rows = rows(&house);
        rows.iter().any(|row| row.2 == 1).then_some(())
    })
    .await;
    alpha.answer(CarrierAnswer::Taken(Vec::new()));
    alpha.let_answer(1);
    until("alpha has it again", async || {
        (alpha.count() == 101).then_some(())
    })
    .await;
    house.engine.stop().await;
}

/// Behind one account's backlog another account's single message waited for all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_message_passes_the_backlog_of_another_account() {
    let house = House::open(HELD).await;
    let alpha = Puppet::held_back("alpha");
    house.equip(&[&alpha], Vec::new()).await;
    send_many(&house, 300, Sending::default()).await;
    all_pooled(&house, 200).await;
    for round in 1..=3 {
        alpha.let_answer(10);
        until("ten more", async || {
            (alpha.count() > round * 10).then_some(())
        })
        .await;
        let other = Sending {
            by_other: true,
            ..Sending::default()
        };
        let sent = alpha.count();
        let single = house.send_as(TO_ALPHA, other).await;
        let before = rows(&house).len();
        assert!(before > 200, "{before}");
        alpha.let_answer(4);
        until("it leaves", async || {
            alpha.asked().contains(&single).then_some(())
        })
        .await;
        let position = alpha.asked().iter().position(|id| *id == single);
        let passed = position.expect("asked") - sent;
        assert!(passed <= 3, "{passed} others left before it");
        alpha.let_answer(alpha.count().saturating_sub(round * 10 + 1));
    }
    alpha.let_answer(1_000);
    until("all leave", async || (alpha.count() == 303).then_some(())).await;
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_share_a_carrier_when_both_have_a_backlog() {
    let house = House::open(HELD).await;
    let alpha = Puppet::held_back("alpha");
    house.equip(&[&alpha], Vec::new()).await;
    let first = send_many(&house, 300, Sending::default()).await;
    let other = Sending {
        by_other: true,
        ..Sending::default()
    };
    let second = send_many(&house, 100, other).await;
    all_pooled(&house, 300).await;
    alpha.let_answer(1_000);
    until("all leave", async || (alpha.count() == 400).then_some(())).await;
    let asked = alpha.asked();
    let of = |ids: &[MessageId]| {
        let of: Vec<MessageId> = asked
            .iter()
            .filter(|id| ids.contains(id))
            .copied()
            .collect();
        of
    };
    assert_eq!(of(&first), first, "in order");
    assert_eq!(of(&second), second, "in order");
    let last = asked.iter().rposition(|id| second.contains(id));
    let last = last.expect("asked");
    assert!(
        last < 250,
        "the smaller backlog is through after {last} messages"
    );
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backlog_of_a_route_goes_by_whichever_carrier_works() {
    let (house, beta) = (House::open(HELD).await, Puppet::new("beta"));
    let alpha = Puppet::new("alpha");
    alpha.set(Health::Down);
    beta.set(Health::Down);
    house.equip(&[&alpha, &beta], Vec::new()).await;
    let ids = send_many(&house, 100, Sending::default()).await;
    all_pooled(&house, 50).await;
    beta.set(Health::Up);
    until("beta has all", async || {
        (beta.count() == ids.len()).then_some(())
    })
    .await;
    assert_eq!(alpha.count(), 0);
    house.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backlog_of_a_carrier_that_is_gone_is_routed_anew() {
    let (house, beta) = (House::open(HELD).await, Puppet::new("beta"));
    let alpha = Puppet::new("alpha");
    alpha.set(Health::Down);
    house.equip(&[&alpha], Vec::new()).await;
    let ids = send_many(&house, 100, Sending::default()).await;
    all_pooled(&house, 50).await;
    house.equip(&[&beta], Vec::new()).await;
    until("beta has all", async || {
        (beta.count() == ids.len()).then_some(())
    })
    .await;
    assert_eq!(alpha.count(), 0);
    house.engine.stop().await;
}

/// Messages whose only carrier was down neither expired nor were they reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_expire_while_their_only_carrier_is_down() {
    let (house, alpha) = (House::open(HELD).await, Puppet::new("alpha"));
    alpha.set(Health::Down);
    house.equip(&[&alpha], Vec::new()).await;
    let brief = Sending {
        expire_in: Some(360),
        ..Sending::default()
    };
    let ids = send_many(&house, 60, brief).await;
    all_pooled(&house, 30).await;
    // For those in memory the node's clock decides, for the others the database's.
    house.clock.advance(SignedDuration::from_secs(400));
    house
        .database
        .execute("UPDATE queue SET expires_us = expires_us - 400000000 WHERE owner < -1");
    for id in &ids {
        assert_eq!(house.outcome(*id).await, Outcome::Failed(Code::EXPIRED));
    }
    assert_eq!(alpha.count(), 0);
    house.engine.stop().await;
}

/// The same for a carrier that is up and answers nothing: those behind it in memory expire, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_expire_behind_a_carrier_that_does_not_answer() {
    let (house, alpha) = (House::open(HELD).await, Puppet::held_back("alpha"));
    house.equip(&[&alpha], Vec::new()).await;
    let brief = Sending {
        expire_in: Some(360),
        ..Sending::default()
    };
    let ids = send_many(&house, 10, brief).await;
    until("alpha has the first", async || {
        (alpha.count() == 1).then_some(())
    })
    .await;
    house.clock.advance(SignedDuration::from_secs(400));
    for id in ids.iter().filter(|id| !alpha.asked().contains(id)) {
        assert_eq!(house.outcome(*id).await, Outcome::Failed(Code::EXPIRED));
    }
    assert_eq!(house.state(ids[0]).await, MessageState::Queued);
    alpha.let_answer(1);
    house.engine.stop().await;
}
