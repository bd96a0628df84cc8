//! Traffic counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::delivery::SendResult;
use domain::message::Submission;
use domain::ports::{Cancel, LatencyCount, Span, Store, TrafficCount};
use domain::{AccountId, Channel, Code, Country, Money, Network, Outcome, TestMode, Timestamp};

use super::days::undo_partitions;
use super::fixture::Database;
use super::handshake::UNDO_NODE_INFO;
use super::money::priced;
use super::people::{UNDO_CARRIER_WINDOW, UNDO_PEOPLE};
use super::sample::{accept, create_account, message};
use super::steps::{
    ABSENT, claim, due_at, first_result, future, held, join, past, receipt, report, result, settle,
    taken,
};

on_both_databases!(
    an_ended_message_is_counted_once_with_its_cost,
    messages_are_counted_by_hour_and_by_day_and_network,
    lookups_are_counted_by_their_reported_outcome,
    adding_up_changes_no_count,
    concurrent_adding_up_counts_nothing_twice,
    latencies_of_delivered_messages_are_counted_by_day,
    ended_messages_of_an_older_schema_are_counted,
);

/// Undoes the migration that added traffic counts, and those after it.
pub(super) const UNDO_DASHBOARD: &str = "
    DROP TABLE IF EXISTS traffic_fresh;
    ALTER TABLE account ADD COLUMN balance_micros BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE account ADD COLUMN spent_day INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE account ADD COLUMN spent_micros BIGINT NOT NULL DEFAULT 0;
    UPDATE account SET balance_micros = l.balance_micros, spent_day = l.spent_day, spent_micros = l.spent_micros
        FROM ledger AS l WHERE l.account_id = account.id
            AND l.id = (SELECT max(n.id) FROM ledger AS n WHERE n.account_id = account.id);
    ALTER TABLE ledger DROP COLUMN spent_day; ALTER TABLE ledger DROP COLUMN spent_micros;
    DROP TABLE traffic; DROP INDEX message_found; DROP INDEX transit_message; DROP INDEX transit_unmatched;
    DROP INDEX callback_parked_account; DROP INDEX oauth_grant_account;
    ALTER TABLE token DROP COLUMN last_used_us;
    DELETE FROM schema_migration WHERE number >= 9";

const PRICE: i64 = 70_000;
const NO_ROUTE: Outcome = Outcome::Failed(Code::LINK_DOWN);

/// Messages and cost by code; `None` is cancelled.
type Ends = BTreeMap<Option<u16>, (u64, i64)>;

fn ends(counts: &[TrafficCount]) -> Ends {
    let mut ends = Ends::new();
    for count in counts {
        let code = count.outcome.map(|outcome| outcome.code().number());
        let sums = ends.entry(code).or_default();
        sums.0 += count.messages;
        sums.1 += count.cost.micros();
    }
    ends
}

async fn list(store: &Arc<dyn Store>, owner: Option<AccountId>, span: Span) -> Vec<TrafficCount> {
    let (from, until) = (past(-1_000_000), future(1_000_000));
    let listed = store.list_traffic(owner, span, from, until).await;
    listed.expect("the store answers")
}

fn network(code: &str) -> Network {
    code.parse().expect("a network")
}

/// The submission with this number of parts, to this network, or to this country if the network is unknown.
fn to_network(mut submission: Submission, parts: u8, code: &str) -> Submission {
    submission.shape.parts = parts;
    for recipient in &mut submission.recipients {
        recipient.country = Country::parse("LV").ok();
        recipient.network = (code != "LV").then(|| network(code));
    }
    submission
}

/// Ends five messages in five ways, some of them twice.
async fn end_in_every_way(store: &Arc<dyn Store>, owner: AccountId) {
    let node = join(store).await;
    let mut batch: Vec<Submission> = (1..=4).map(|id| held(id, node)).collect();
    batch[3].expires_at = past(10);
    batch.push(due_at(5, future(1)));
    let batch = batch
        .into_iter()
        .map(|submission| priced(submission, owner, PRICE));
    accept(store, batch.collect()).await;
    let mut late = first_result(4, taken(&["d"]));
    late.expires_at = past(10);
    let results = vec![
        first_result(1, taken(&["a"])),
        first_result(2, taken(&["b"])),
        first_result(3, SendResult::Over(NO_ROUTE)),
        late,
    ];
    settle(store, node, results).await;
    for _ in 0..2 {
        let receipts = vec![receipt("a", Outcome::Delivered), receipt("b", ABSENT)];
        report(store, node, receipts).await;
        store.expire_sent(node, 10, true).await.expect("answers");
    }
    for expected in [true, false] {
        let cancelled = store.cancel(owner, message(5), past(3)).await;
        assert_eq!(cancelled.expect("answers") == Cancel::Done, expected);
    }
}

fn every_end() -> Ends {
    let absent = Code::ABSENT.number();
    Ends::from([
        (None, (1, 0)),
        (Some(0), (1, PRICE)),
        (Some(Code::EXPIRED.number()), (1, PRICE)),
        (Some(absent), (1, PRICE)),
        (Some(Code::LINK_DOWN.number()), (1, 0)),
    ])
}

async fn an_ended_message_is_counted_once_with_its_cost(database: Database) {
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    end_in_every_way(&store, owner).await;
    let listed = store
        .list_deliveries(past(-1_000_000), future(1_000_000))
        .await;
    let listed = listed.expect("the store answers");
    let (accounts, sent): (BTreeSet<_>, u64) = (
        listed.iter().map(|it| it.account).collect(),
        listed.iter().map(|it| it.sent).sum(),
    );
    assert_eq!((accounts, sent), (BTreeSet::from([owner]), 4), "{listed:?}");
    assert_eq!(listed.iter().map(|it| it.delivered).sum::<u64>(), 1);
    for span in [Span::Hour, Span::Day] {
        assert_eq!(ends(&list(&store, Some(owner), span).await), every_end());
        assert_eq!(ends(&list(&store, None, span).await), every_end(), "of all");
        assert_eq!(list(&store, Some(other), span).await, []);
    }
}

async fn messages_are_counted_by_hour_and_by_day_and_network(database: Database) {
    const HOUR: i64 = 3_600;
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let node = join(&store).await;
    // Two end in the same hour, one in the next, one on the next day.
    let sent = [
        (1, 1, "24701", 0),
        (2, 3, "24702", 10),
        (3, 1, "24701", HOUR),
        (4, 2, "24701", 24 * HOUR),
        (5, 1, "LV", 24 * HOUR),
    ];
    let day = Timestamp::from_second(1_000_000_000 / 86_400 * 86_400).expect("within range");
    for (id, parts, code, second) in sent {
        let one = to_network(held(id, node), parts, code);
        accept(&store, vec![priced(one, owner, PRICE)]).await;
        let name = id.to_string();
        settle(&store, node, vec![first_result(id, taken(&[&name]))]).await;
        let mut ended = receipt(&name, Outcome::Delivered);
        ended.at = day + jiff::SignedDuration::from_secs(second);
        report(&store, node, vec![ended]).await;
    }
    let count = |second: i64, code: Option<&str>, messages: u64, parts: u64| TrafficCount {
        start: day + jiff::SignedDuration::from_secs(second),
        channel: Channel::Sms,
        network: code.filter(|code| *code != "LV").map(network),
        country: code.and_then(|code| Country::parse(code).ok()),
        outcome: Some(Outcome::Delivered),
        messages,
        parts,
        cost: Money::from_micros(PRICE * i64::try_from(messages).expect("small")),
    };
    let hours = [
        count(0, None, 2, 4),
        count(HOUR, None, 1, 1),
        count(24 * HOUR, None, 2, 3),
    ];
    assert_eq!(list(&store, Some(owner), Span::Hour).await, hours);
    let days = [
        count(0, Some("24701"), 2, 2),
        count(0, Some("24702"), 1, 3),
        count(24 * HOUR, Some("LV"), 1, 1),
        count(24 * HOUR, Some("24701"), 1, 2),
    ];
    assert_eq!(list(&store, Some(owner), Span::Day).await, days);

    let next_day = day + jiff::SignedDuration::from_hours(24);
    let only = |from, until| store.list_traffic(Some(owner), Span::Day, from, until);
    let first = only(day, next_day).await.expect("answers");
    assert_eq!(first, days[..2], "the end is excluded");
    let second = only(day + jiff::SignedDuration::from_secs(1), future(0)).await;
    assert_eq!(
        second.expect("answers"),
        days[2..],
        "a span that starts before is excluded"
    );
}

/// Adds up all counts, `step` rows at a time, and returns how many there were.
async fn add_up(store: &Arc<dyn Store>, step: u32) -> u64 {
    let mut sum = 0;
    loop {
        let added = store.add_up_traffic(step).await.expect("answers");
        sum += added;
        if added < u64::from(step) {
            return sum;
        }
    }
}

async fn adding_up_changes_no_count(database: Database) {
    const LEFT: &str = "SELECT count(*) FROM traffic_fresh";
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    end_in_every_way(&store, owner).await;
    let mut before = Vec::new();
    for span in [Span::Hour, Span::Day] {
        before.push((span, list(&store, Some(owner), span).await));
    }
    let is_postgres = matches!(database, Database::Postgres(_));
    for step in [1, 1, 1, 2, 100] {
        let added = store.add_up_traffic(step).await.expect("answers");
        assert!(added <= u64::from(step));
        for (span, before) in &before {
            assert_eq!(list(&store, Some(owner), *span).await, *before);
            assert_eq!(list(&store, None, *span).await, *before, "of all");
        }
    }
    assert_eq!(add_up(&store, 100).await, 0);
    if is_postgres {
        assert_eq!(database.numbers(LEFT, 1).await, [[Some(0)]]);
    }
}

/// Several nodes add up while messages end.
async fn concurrent_adding_up_counts_nothing_twice(database: Database) {
    const MESSAGES: u64 = 60;
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let node = join(&store).await;
    let batch = (1..=MESSAGES).map(|id| priced(held(id, node), owner, PRICE));
    accept(&store, batch.collect()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let store = database.open().await;
        tasks.spawn(async move {
            for _ in 0..20 {
                add_up(&store, 3).await;
            }
        });
    }
    for id in 1..=MESSAGES {
        let over = first_result(id, SendResult::Over(Outcome::Delivered));
        settle(&store, node, vec![over]).await;
    }
    tasks.join_all().await;
    let counted = |counts: &[TrafficCount]| -> u64 { counts.iter().map(|it| it.messages).sum() };
    for span in [Span::Hour, Span::Day] {
        assert_eq!(counted(&list(&store, Some(owner), span).await), MESSAGES);
    }
    // A new store starts with the oldest counts, so that none is left.
    add_up(&database.open().await, 100).await;
    for span in [Span::Hour, Span::Day] {
        assert_eq!(counted(&list(&store, None, span).await), MESSAGES);
    }
}

async fn lookups_are_counted_by_their_reported_outcome(database: Database) {
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let node = join(&store).await;
    let lookup = |id| Submission {
        channel: Channel::Hlr,
        from: None,
        ..priced(held(id, node), owner, PRICE)
    };
    accept(&store, vec![lookup(1), lookup(2)]).await;
    let answered = SendResult::Answered {
        carrier: Some("alpha".to_owned()),
        outcome: Outcome::Delivered,
        report: "{}".to_owned(),
    };
    let results = vec![
        first_result(1, answered),
        first_result(2, SendResult::Over(NO_ROUTE)),
    ];
    settle(&store, node, results).await;
    let counts = list(&store, Some(owner), Span::Hour).await;
    assert!(counts.iter().all(|count| count.channel == Channel::Hlr));
    let state = store.find_message(owner, message(2)).await;
    let state = state.expect("answers").expect("it is there").state;
    let domain::MessageState::Ended { outcome, .. } = state else {
        panic!("{state:?}")
    };
    let expected = Ends::from([
        (Some(0), (1, PRICE)),
        (Some(outcome.code().number()), (1, 0)),
    ]);
    assert_eq!(ends(&counts), expected);
    assert_eq!(latencies(&store, Some(owner)).await, [], "no lookups");
}

/// The day, the bucket and the number of messages.
async fn latencies(store: &Arc<dyn Store>, owner: Option<AccountId>) -> Vec<(i64, usize, u64)> {
    let (from, until) = (past(-1_000_000), future(1_000_000));
    let listed = store.list_latencies(owner, from, until).await;
    let listed = listed.expect("the store answers");
    let read = |count: &LatencyCount| {
        let day = count.day.as_second() / 86_400;
        (day, count.bucket, count.messages)
    };
    listed.iter().map(read).collect()
}

async fn latencies_of_delivered_messages_are_counted_by_day(database: Database) {
    const DAY: i64 = 86_400;
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let node = join(&store).await;
    let mut batch: Vec<Submission> = (1..=6).map(|id| held(id, node)).collect();
    batch[5].test_mode = Some(TestMode::Deliver);
    let batch = batch.into_iter().map(|it| priced(it, owner, 0));
    accept(&store, batch.collect()).await;
    let results = (1..=6).map(|id| first_result(id, taken(&[&format!("ref-{id}")])));
    settle(&store, node, results.collect()).await;
    let ended = |id: u64, outcome, after_s: i64| {
        let mut ended = receipt(&format!("ref-{id}"), outcome);
        ended.at = past(after_s);
        ended
    };
    // Twice, as carriers may report.
    for _ in 0..2 {
        let receipts = vec![
            ended(1, Outcome::Delivered, 0),
            ended(2, Outcome::Delivered, 4),
            ended(3, Outcome::Delivered, 4),
            ended(4, Outcome::Delivered, 2 * DAY),
            ended(5, ABSENT, 4),
            ended(6, Outcome::Delivered, 4),
        ];
        report(&store, node, receipts).await;
    }
    // A scheduled message counts from the time that it was scheduled for.
    let scheduled = priced(due_at(7, past(100)), owner, 0);
    accept(&store, vec![scheduled]).await;
    let claimed = claim(&store, node).await;
    let mut sent = result(&claimed[0], SendResult::Over(Outcome::Delivered));
    sent.at = past(104);
    settle(&store, node, vec![sent]).await;

    let day = past(0).as_second() / DAY;
    let expected = [(day, 0, 1), (day, 4, 3), (day + 2, 16, 1)];
    for step in [1, 1, 2, 100] {
        assert_eq!(latencies(&store, Some(owner)).await, expected);
        assert_eq!(latencies(&store, None).await, expected, "of all");
        store.add_up_traffic(step).await.expect("answers");
    }
    assert_eq!(latencies(&store, Some(owner)).await, expected, "added up");
    assert_eq!(latencies(&store, Some(other)).await, []);
    let later = past(0) + jiff::SignedDuration::from_hours(24);
    let listed = store.list_latencies(Some(owner), later, future(0)).await;
    assert_eq!(listed.expect("answers").len(), 1, "only later days");
    let theirs = priced(held(8, node), other, 0);
    accept(&store, vec![theirs]).await;
    settle(&store, node, vec![first_result(8, taken(&["ref-8"]))]).await;
    report(&store, node, vec![ended(8, Outcome::Delivered, 4)]).await;
    assert_eq!(latencies(&store, Some(other)).await, [(day, 4, 1)]);
    let expected = [(day, 0, 1), (day, 4, 4), (day + 2, 16, 1)];
    assert_eq!(latencies(&store, None).await, expected, "of both");
}

async fn ended_messages_of_an_older_schema_are_counted(database: Database) {
    let store = database.open().await;
    let owner = create_account(&store, "acme").await;
    end_in_every_way(&store, owner).await;
    drop(store);
    undo_partitions(&database).await;
    database.execute(UNDO_NODE_INFO).await;
    database.execute(UNDO_CARRIER_WINDOW).await;
    database.execute(UNDO_DASHBOARD).await;
    database.execute(UNDO_PEOPLE).await;

    let store = database.open().await;
    for span in [Span::Hour, Span::Day] {
        assert_eq!(ends(&list(&store, Some(owner), span).await), every_end());
    }
}
