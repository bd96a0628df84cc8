//! Receipts that come before the answer to their submit, while one of the two is being stored or a node stops.

use std::sync::Arc;

use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{Receipt, SendResult, Settlement};
use domain::ports::{Matched, Settled, Store};
use domain::{MessageState, NodeId, Outcome};
use testkit::PATIENCE;

use super::days::undo_days_of_parts;
use super::fixture::{Database, connect};
use super::receipt_matching::receipts_and_answers_in_other_forms_that_cross_always_meet;
use super::receipts::receipts_and_answers_that_cross_always_meet;
use super::sample::accept;
use super::steps::{
    ABSENT, first_result, held, ids, join, kind, past, receipt, report, send, settle, state, taken,
};

on_both_databases!(early_receipts_and_parts_of_an_older_schema_are_carried_over);
on_a_serializable_database!(crossing, crossing_in_other_forms);

async fn crossing(database: Database) {
    receipts_and_answers_that_cross_always_meet(database.open().await).await;
}

async fn crossing_in_other_forms(database: Database) {
    receipts_and_answers_in_other_forms_that_cross_always_meet(database.open().await).await;
}

/// Another user of the database, with a transaction that is open until it is ended.
struct Other {
    client: tokio_postgres::Client,
    _connection: tokio::task::JoinHandle<()>,
}

impl Other {
    async fn begin(database: &Database, sql: &str) -> Self {
        let Database::Postgres(served) = database else {
            unreachable!("it is one")
        };
        let (client, connection) = connect(served.database()).await;
        let begun = client.batch_execute(&format!("BEGIN; {sql}")).await;
        begun.expect("the statement is valid");
        Self {
            client,
            _connection: connection,
        }
    }

    /// Waits until a statement of somebody else waits for a lock.
    async fn is_waited_for(&self) {
        const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let row = self.client.query_one(WAITING, &[]).await;
            if row.expect("answers").get::<_, i64>(0) > 0 {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "nobody waits");
            tokio::task::yield_now().await;
        }
    }

    async fn end(self) {
        let ended = self.client.batch_execute("ROLLBACK").await;
        ended.expect("it ends");
    }
}

async fn count_kept(store: &Arc<dyn Store>) -> usize {
    store.list_unmatched(100).await.expect("answers").len()
}

/// The receipt is looked for and kept while the answer is stored, but not committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_that_comes_before_the_commit_of_the_answer_meets_it() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    accept(&store, vec![held(1, node), held(2, node)]).await;
    let lock = "SELECT 1 FROM message WHERE id = 2 FOR UPDATE";
    let other = Other::begin(&database, lock).await;
    let answering = tokio::spawn({
        let store = Arc::clone(&store);
        let unknown = first_result(2, SendResult::Unknown(past(1)));
        async move { settle(&store, node, vec![first_result(1, taken(&["a"])), unknown]).await }
    });
    other.is_waited_for().await;
    let early = report(&store, node, vec![receipt("a", ABSENT)]).await;
    assert_eq!(early, [Matched::Kept]);
    assert_eq!(state(&store, 1).await, MessageState::Queued);
    other.end().await;

    let settled = answering.await.expect("it ends");
    let [Settled::Ended(ended), Settled::Stored] = &settled[..] else {
        panic!("{settled:?}")
    };
    assert!(ended.id.get() == 1 && ended.callback.is_some());
    assert_eq!(count_kept(&store).await, 0);
}

/// The answer is stored while the receipt is being kept, but not committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_before_the_commit_of_the_receipt_meets_it() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let other = Other::begin(&database, KEEP).await;
    let reporting = tokio::spawn({
        let store = Arc::clone(&store);
        let twice = vec![receipt("a", ABSENT), receipt("a", ABSENT)];
        async move { report(&store, node, twice).await }
    });
    other.is_waited_for().await;
    let answer = settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    assert_eq!(answer, [Settled::Stored]);
    other.end().await;

    let matched = reporting.await.expect("it ends");
    let kinds: Vec<_> = matched.iter().map(kind).collect();
    assert_eq!(kinds, ["ended", "repeated"]);
    assert_eq!(count_kept(&store).await, 0);
}

const KEEP: &str = "INSERT INTO early_receipt (carrier, reference, tail, status, error, taken_us)
    VALUES ('alpha', 'a', -1, 2, 43, 5)";

async fn compare(store: &Arc<dyn Store>, node: NodeId, limit: u32) -> Vec<u64> {
    let ended = store.compare_receipts(node, limit, true).await;
    let ended = ended.expect("answers");
    assert!(ended.iter().all(|ended| ended.callback.is_some()));
    ids(&ended)
}

/// As if nodes had stopped between storing a receipt or an answer and looking for the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stopped_nodes_left_is_found_by_the_comparison() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    send(&store, node, 1, &["a"]).await;
    send(&store, node, 2, &["1A2B"]).await;
    send(&store, node, 3, &["done"]).await;
    report(&store, node, vec![receipt("done", Outcome::Delivered)]).await;
    let tail = NumberTail::of(&held(2, node).recipients[0].to).as_i32();
    let rest = format!(
        "INSERT INTO early_receipt (carrier, reference, tail, status, error, taken_us)
        VALUES ('alpha', '6699', {tail}, 1, 0, 5), ('alpha', '6699', 7, 1, 0, 5), ('alpha', 'done', 7, 1, 0, 5),
            ('alpha', 'b', -1, 1, 0, 5), ('beta', 'a', -1, 1, 0, 5)"
    );
    database.execute(KEEP).await;
    database.execute(&rest).await;

    let mut ended = Vec::new();
    for _ in 0..4 {
        ended.extend(compare(&store, node, 2).await);
    }
    ended.sort_unstable();
    assert_eq!(ended, [1, 2], "each step goes on behind the last one");
    assert_eq!(state(&store, 1).await.name(), "failed");
    assert_eq!(state(&store, 2).await.name(), "delivered");
    assert_eq!(count_kept(&store).await, 4, "others stay");
    assert_eq!(compare(&store, node, 100).await, [0; 0]);
    assert_eq!(count_kept(&store).await, 4);
}

/// The caller learns only about messages of its own batch, so no node holds the reports on others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_on_a_message_of_another_batch_waits_in_the_store() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    let later = Settlement {
        at: past(5),
        ..first_result(1, taken(&["a"]))
    };
    accept(&store, vec![held(1, node), held(2, node)]).await;
    settle(&store, node, vec![later]).await;
    database.execute(KEEP).await;
    let settled = settle(&store, node, vec![first_result(2, taken(&["a"]))]).await;
    assert_eq!(settled, [Settled::Stored]);
    assert_eq!(state(&store, 1).await.name(), "failed", "the newest part");
    let held = "SELECT count(*) FROM callback_queue WHERE owner > 0";
    assert_eq!(database.numbers(held, 1).await, [[Some(0)]]);
}

async fn early_receipts_and_parts_of_an_older_schema_are_carried_over(database: Database) {
    const OLDER: &str = "
        UPDATE node SET alive_until_us = 0;
        INSERT INTO transit (carrier, reference, id, part, parts, taken_us, tail, former)
            SELECT carrier, reference, 2, 1, 1, taken_us + 1, tail, 1 FROM transit WHERE id = 1;
        INSERT INTO transit (carrier, reference, taken_us, status, error, tail, alias_of)
            SELECT carrier, '1A2B', taken_us, status, error, tail, reference FROM transit
            WHERE id IS NULL AND tail IS NOT NULL";
    let store = database.open().await;
    let node = join(&store).await;
    send(&store, node, 1, &["a"]).await;
    accept(&store, vec![held(2, node), held(3, node), held(5, node)]).await;
    let for_three = Receipt {
        to: Some(NumberTail::of(&held(3, node).recipients[0].to)),
        ..receipt("6699", ABSENT)
    };
    report(&store, node, vec![for_three, receipt("b", ABSENT)]).await;
    drop(store);
    undo_days_of_parts(&database).await;
    database.execute(OLDER).await;

    let store = database.open().await;
    let node = join(&store).await;
    assert_eq!(count_kept(&store).await, 2, "each once");
    let matched = report(&store, node, vec![receipt("a", ABSENT)]).await;
    let [Matched::Ended(ended)] = &matched[..] else {
        panic!("{matched:?}")
    };
    assert_eq!(ended.id.get(), 2, "the newest use");
    // The node of before holds them under its own number, which is the first.
    let first = NodeId::new(1).expect("a node");
    let answers = vec![
        first_result(3, taken(&["1A2B"])),
        first_result(5, taken(&["b"])),
    ];
    let settled = settle(&store, first, answers).await;
    assert!(
        matches!(settled[..], [Settled::Ended(_), Settled::Ended(_)]),
        "{settled:?}"
    );
    assert_eq!(count_kept(&store).await, 0);
}
