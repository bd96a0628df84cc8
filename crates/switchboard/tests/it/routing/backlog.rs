//! Messages that wait for a full or disconnected carrier: they cause no writes, keep their order, share the carrier
//! between accounts, and expire in time.

use domain::delivery::CarrierAnswer;
use domain::ports::Health;
use domain::{Code, MessageId, MessageState, Outcome};
use engine::sending::routing::{Choice, Condition, Rule};
use jiff::SignedDuration;

use super::fixture::{FakeCarrier, Fixture, SendOptions, code, wait_for};

const TO_ALPHA: &str = "+37120000001";
const TO_BETA: &str = "+4915112345678";

/// Capacity of the memory in messages, over all carriers and lanes.
const HELD: usize = 60;

/// The queue rows of messages that no carrier has accepted: owner, number of claims, number of attempts.
fn rows(fixture: &Fixture) -> Vec<(i64, i64, i64)> {
    let rows = fixture.database.numbers(
        "SELECT owner, CAST(attempt AS BIGINT), CAST(tries AS BIGINT) FROM queue WHERE owner <> -1 ORDER BY id",
        3,
    );
    let number = |value: &Option<i64>| value.expect("not null");
    rows.iter()
        .map(|row| (number(&row[0]), number(&row[1]), number(&row[2])))
        .collect()
}

/// Waits until every message that no node holds is in a pool.
async fn wait_until_pooled(fixture: &Fixture, least: usize) {
    wait_for(
        "messages that do not fit in memory are in a pool",
        async || {
            let rows = rows(fixture);
            let pooled = rows.iter().filter(|row| row.0 < -1).count();
            let is_done = pooled >= least && rows.iter().all(|row| row.0 != 0);
            is_done.then_some(())
        },
    )
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
        ported_numbers: false,
    }
}

async fn send_many(fixture: &Fixture, count: usize, options: SendOptions) -> Vec<MessageId> {
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        ids.push(fixture.send_as(TO_ALPHA, options).await);
    }
    ids
}

/// Regression test: while another carrier had capacity, the backlog of a full carrier was claimed and released
/// repeatedly, newer messages overtook older ones, and the first throttled message then waited for minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_carrier_beside_an_idle_one_costs_no_writes() {
    let (fixture, beta) = (Fixture::open(2 * HELD).await, FakeCarrier::new("beta"));
    let alpha = FakeCarrier::with_limited_answers("alpha");
    let rules = vec![by_prefix("371", 0), by_prefix("49", 1)];
    fixture.set_carriers(&[&alpha, &beta], rules).await;
    let ids = send_many(&fixture, 100, SendOptions::default()).await;
    wait_until_pooled(&fixture, 50).await;
    wait_for(
        "the oldest are in memory, the others in the pool",
        async || {
            let rows = rows(&fixture);
            let mut others = rows.iter().skip_while(|row| row.0 > 0);
            others.all(|row| row.0 < -1).then_some(())
        },
    )
    .await;
    let before = rows(&fixture);

    // Only a scan finds scheduled messages, so these prove that scans took place.
    let later = SendOptions {
        scheduled_in: Some(1),
        ..SendOptions::default()
    };
    for sent in 1..=3 {
        fixture.send_as(TO_BETA, later).await;
        wait_for("beta has it", async || (beta.count() == sent).then_some(())).await;
    }
    wait_for("only alpha's messages wait", async || {
        (rows(&fixture).len() == before.len()).then_some(())
    })
    .await;
    assert_eq!(rows(&fixture), before, "rows were claimed or released");
    assert!(before.iter().all(|row| row.1 <= 2), "{before:?}");

    alpha.allow_answers(99);
    wait_for("alpha has all", async || {
        (alpha.count() == 100).then_some(())
    })
    .await;
    assert_eq!(alpha.submitted(), ids, "not in order, or not once");

    // The first throttle causes a pause of seconds, however long the message has waited before.
    alpha.set_answer(CarrierAnswer::NotNow(code(31)));
    alpha.allow_answers(1);
    wait_for("it is retried", async || {
        let rows = rows(&fixture);
        rows.iter().any(|row| row.2 == 1).then_some(())
    })
    .await;
    alpha.set_answer(CarrierAnswer::Taken(Vec::new()));
    alpha.allow_answers(1);
    wait_for("alpha has it again", async || {
        (alpha.count() == 101).then_some(())
    })
    .await;
    fixture.engine.stop().await;
}

/// Regression test: a single message waited for the whole backlog of another account.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_message_overtakes_the_backlog_of_another_account() {
    let fixture = Fixture::open(HELD).await;
    let alpha = FakeCarrier::with_limited_answers("alpha");
    fixture.set_carriers(&[&alpha], Vec::new()).await;
    send_many(&fixture, 300, SendOptions::default()).await;
    wait_until_pooled(&fixture, 200).await;
    for round in 1..=3 {
        alpha.allow_answers(10);
        wait_for("ten more", async || {
            (alpha.count() > round * 10).then_some(())
        })
        .await;
        let other = SendOptions {
            from_other_account: true,
            ..SendOptions::default()
        };
        let sent = alpha.count();
        let single = fixture.send_as(TO_ALPHA, other).await;
        let before = rows(&fixture).len();
        assert!(before > 200, "{before}");
        alpha.allow_answers(4);
        wait_for("it is sent", async || {
            alpha.submitted().contains(&single).then_some(())
        })
        .await;
        let position = alpha.submitted().iter().position(|id| *id == single);
        let sent_before_it = position.expect("sent") - sent;
        assert!(
            sent_before_it <= 3,
            "{sent_before_it} others were sent before it"
        );
        alpha.allow_answers(alpha.count().saturating_sub(round * 10 + 1));
    }
    alpha.allow_answers(1_000);
    wait_for("all are sent", async || {
        (alpha.count() == 303).then_some(())
    })
    .await;
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_share_a_carrier_when_both_have_a_backlog() {
    let fixture = Fixture::open(HELD).await;
    let alpha = FakeCarrier::with_limited_answers("alpha");
    fixture.set_carriers(&[&alpha], Vec::new()).await;
    let first = send_many(&fixture, 300, SendOptions::default()).await;
    let other = SendOptions {
        from_other_account: true,
        ..SendOptions::default()
    };
    let second = send_many(&fixture, 100, other).await;
    wait_until_pooled(&fixture, 300).await;
    alpha.allow_answers(1_000);
    wait_for("all are sent", async || {
        (alpha.count() == 400).then_some(())
    })
    .await;
    let submitted = alpha.submitted();
    let sent_of = |ids: &[MessageId]| {
        let sent: Vec<MessageId> = submitted
            .iter()
            .filter(|id| ids.contains(id))
            .copied()
            .collect();
        sent
    };
    assert_eq!(sent_of(&first), first, "not in order");
    assert_eq!(sent_of(&second), second, "not in order");
    let last = submitted.iter().rposition(|id| second.contains(id));
    let last = last.expect("sent");
    assert!(last < 250, "the smaller backlog took {last} messages");
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backlog_of_a_route_goes_by_any_carrier_that_works() {
    let (fixture, beta) = (Fixture::open(HELD).await, FakeCarrier::new("beta"));
    let alpha = FakeCarrier::new("alpha");
    alpha.set_health(Health::Down);
    beta.set_health(Health::Down);
    fixture.set_carriers(&[&alpha, &beta], Vec::new()).await;
    let ids = send_many(&fixture, 100, SendOptions::default()).await;
    wait_until_pooled(&fixture, 50).await;
    beta.set_health(Health::Up);
    wait_for("beta has all", async || {
        (beta.count() == ids.len()).then_some(())
    })
    .await;
    assert_eq!(alpha.count(), 0);
    fixture.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backlog_of_a_removed_carrier_is_rerouted() {
    let (fixture, beta) = (Fixture::open(HELD).await, FakeCarrier::new("beta"));
    let alpha = FakeCarrier::new("alpha");
    alpha.set_health(Health::Down);
    fixture.set_carriers(&[&alpha], Vec::new()).await;
    let ids = send_many(&fixture, 100, SendOptions::default()).await;
    wait_until_pooled(&fixture, 50).await;
    fixture.set_carriers(&[&beta], Vec::new()).await;
    wait_for("beta has all", async || {
        (beta.count() == ids.len()).then_some(())
    })
    .await;
    assert_eq!(alpha.count(), 0);
    fixture.engine.stop().await;
}

/// Regression test: messages whose only carrier was down did not expire and were not reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_expire_while_their_only_carrier_is_down() {
    let (fixture, alpha) = (Fixture::open(HELD).await, FakeCarrier::new("alpha"));
    alpha.set_health(Health::Down);
    fixture.set_carriers(&[&alpha], Vec::new()).await;
    let short_lived = SendOptions {
        expire_in: Some(360),
        ..SendOptions::default()
    };
    let ids = send_many(&fixture, 60, short_lived).await;
    wait_until_pooled(&fixture, 30).await;
    // Messages in memory expire by the clock of the node, the others by the clock of the database.
    fixture.clock.advance(SignedDuration::from_secs(400));
    fixture
        .database
        .execute("UPDATE queue SET expires_us = expires_us - 400000000 WHERE owner < -1");
    for id in &ids {
        assert_eq!(fixture.outcome(*id).await, Outcome::Failed(Code::EXPIRED));
    }
    assert_eq!(alpha.count(), 0);
    fixture.engine.stop().await;
}

/// The carrier is up but never answers: the messages that wait behind it in memory expire as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_expire_behind_a_carrier_that_does_not_answer() {
    let (fixture, alpha) = (
        Fixture::open(HELD).await,
        FakeCarrier::with_limited_answers("alpha"),
    );
    fixture.set_carriers(&[&alpha], Vec::new()).await;
    let short_lived = SendOptions {
        expire_in: Some(360),
        ..SendOptions::default()
    };
    let ids = send_many(&fixture, 10, short_lived).await;
    wait_for("alpha has the first", async || {
        (alpha.count() == 1).then_some(())
    })
    .await;
    fixture.clock.advance(SignedDuration::from_secs(400));
    for id in ids.iter().filter(|id| !alpha.submitted().contains(id)) {
        assert_eq!(fixture.outcome(*id).await, Outcome::Failed(Code::EXPIRED));
    }
    assert_eq!(fixture.state(ids[0]).await, MessageState::Queued);
    alpha.allow_answers(1);
    fixture.engine.stop().await;
}
