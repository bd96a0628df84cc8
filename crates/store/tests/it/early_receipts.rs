//! Receipts that arrive before the answer to their submit, while one of the two is being stored, or a node stops.

use std::sync::Arc;

use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{Receipt, Settlement};
use domain::ports::{Matched, Settled, Store};
use domain::{MessageState, NodeId, Outcome};
use testkit::TEST_TIMEOUT;

use super::days::undo_days_of_parts;
use super::fixture::{Database, connect};
use super::receipt_matching::concurrent_receipts_and_answers_in_other_forms_are_always_matched;
use super::receipts::concurrent_receipts_and_answers_are_always_matched;
use super::sample::accept;
use super::steps::{
    ABSENT, first_result, held, ids, join, kind, past, receipt, report, send, settle, state, taken,
    unanswered,
};

on_both_databases!(early_receipts_and_parts_of_an_older_schema_are_migrated);
on_a_serializable_database!(concurrent, concurrent_in_other_forms);

async fn concurrent(database: Database) {
    concurrent_receipts_and_answers_are_always_matched(database.open().await).await;
}

async fn concurrent_in_other_forms(database: Database) {
    concurrent_receipts_and_answers_in_other_forms_are_always_matched(database.open().await).await;
}

/// An open transaction of another connection.
struct OtherTransaction {
    client: tokio_postgres::Client,
    _connection: tokio::task::JoinHandle<()>,
}

impl OtherTransaction {
    async fn begin(database: &Database, sql: &str) -> Self {
        let Database::Postgres(server) = database else {
            unreachable!("it is one")
        };
        let (client, connection) = connect(server.database()).await;
        let begun = client.batch_execute(&format!("BEGIN; {sql}")).await;
        begun.expect("the statement is valid");
        Self {
            client,
            _connection: connection,
        }
    }

    /// Waits until a statement of another connection waits for a lock.
    async fn wait_for_blocked_statement(&self) {
        const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let deadline = tokio::time::Instant::now() + TEST_TIMEOUT;
        loop {
            let row = self.client.query_one(WAITING, &[]).await;
            if row.expect("answers").get::<_, i64>(0) > 0 {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "no statement waits");
            tokio::task::yield_now().await;
        }
    }

    async fn end(self) {
        let ended = self.client.batch_execute("ROLLBACK").await;
        ended.expect("it ends");
    }
}

async fn count_unmatched(store: &Arc<dyn Store>) -> usize {
    store.list_unmatched(100).await.expect("answers").len()
}

/// The receipt is stored while the answer is written, but not committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_before_the_commit_of_the_answer_is_matched() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    accept(&store, vec![held(1, node), held(2, node)]).await;
    let lock = "SELECT 1 FROM message WHERE id = 2 FOR UPDATE";
    let other = OtherTransaction::begin(&database, lock).await;
    let answering = tokio::spawn({
        let store = Arc::clone(&store);
        let unknown = first_result(2, unanswered(past(1)));
        async move { settle(&store, node, vec![first_result(1, taken(&["a"])), unknown]).await }
    });
    other.wait_for_blocked_statement().await;
    let early = report(&store, node, vec![receipt("a", ABSENT)]).await;
    assert_eq!(early, [Matched::Kept]);
    assert_eq!(state(&store, 1).await, MessageState::Queued);
    other.end().await;

    let settled = answering.await.expect("it ends");
    let [Settled::Ended(ended), Settled::Stored] = &settled[..] else {
        panic!("{settled:?}")
    };
    assert!(ended.id.get() == 1 && ended.callback.is_some());
    assert_eq!(count_unmatched(&store).await, 0);
}

/// The answer is stored while the receipt is written, but not committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_before_the_commit_of_the_receipt_is_matched() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    accept(&store, vec![held(1, node)]).await;
    let other = OtherTransaction::begin(&database, INSERT_EARLY).await;
    let reporting = tokio::spawn({
        let store = Arc::clone(&store);
        let twice = vec![receipt("a", ABSENT), receipt("a", ABSENT)];
        async move { report(&store, node, twice).await }
    });
    other.wait_for_blocked_statement().await;
    let answer = settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    assert_eq!(answer, [Settled::Stored]);
    other.end().await;

    let matched = reporting.await.expect("it ends");
    let kinds: Vec<_> = matched.iter().map(kind).collect();
    assert_eq!(kinds, ["ended", "repeated"]);
    assert_eq!(count_unmatched(&store).await, 0);
}

const INSERT_EARLY: &str =
    "INSERT INTO early_receipt (carrier, reference, tail, status, error, taken_us)
    VALUES ('alpha', 'a', -1, 2, 43, 5)";

async fn match_stored(store: &Arc<dyn Store>, node: NodeId, limit: u32) -> Vec<u64> {
    let ended = store.match_stored_receipts(node, limit, true).await;
    let ended = ended.expect("answers");
    assert!(ended.iter().all(|ended| ended.callback.is_some()));
    ids(&ended)
}

/// As if nodes had stopped between storing a receipt or an answer and looking for the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipts_left_by_stopped_nodes_are_matched() {
    let database = Database::postgres().await;
    let store = database.open().await;
    let node = join(&store).await;
    send(&store, node, 1, &["a"]).await;
    send(&store, node, 2, &["1A2B"]).await;
    send(&store, node, 3, &["done"]).await;
    report(&store, node, vec![receipt("done", Outcome::Delivered)]).await;
    let tail = NumberTail::from_number(&held(2, node).recipients[0].to).as_i32();
    let rest = format!(
        "INSERT INTO early_receipt (carrier, reference, tail, status, error, taken_us)
        VALUES ('alpha', '6699', {tail}, 1, 0, 5), ('alpha', '6699', 7, 1, 0, 5), ('alpha', 'done', 7, 1, 0, 5),
            ('alpha', 'b', -1, 1, 0, 5), ('beta', 'a', -1, 1, 0, 5)"
    );
    database.execute(INSERT_EARLY).await;
    database.execute(&rest).await;

    let mut ended = Vec::new();
    for _ in 0..4 {
        ended.extend(match_stored(&store, node, 2).await);
    }
    ended.sort_unstable();
    assert_eq!(ended, [1, 2], "each step continues after the one before");
    assert_eq!(state(&store, 1).await.name(), "failed");
    assert_eq!(state(&store, 2).await.name(), "delivered");
    assert_eq!(count_unmatched(&store).await, 4, "the others are unchanged");
    assert_eq!(match_stored(&store, node, 100).await, [0; 0]);
    assert_eq!(count_unmatched(&store).await, 4);
}

/// A caller gets only the reports on messages of its batch, so no node may hold the others.
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
    database.execute(INSERT_EARLY).await;
    let settled = settle(&store, node, vec![first_result(2, taken(&["a"]))]).await;
    assert_eq!(settled, [Settled::Stored]);
    assert_eq!(state(&store, 1).await.name(), "failed", "the newest part");
    let held = "SELECT count(*) FROM callback_queue WHERE owner > 0";
    assert_eq!(database.numbers(held, 1).await, [[Some(0)]]);
}

async fn early_receipts_and_parts_of_an_older_schema_are_migrated(database: Database) {
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
        to: Some(NumberTail::from_number(&held(3, node).recipients[0].to)),
        ..receipt("6699", ABSENT)
    };
    report(&store, node, vec![for_three, receipt("b", ABSENT)]).await;
    drop(store);
    undo_days_of_parts(&database).await;
    database.execute(OLDER).await;

    let store = database.open().await;
    let node = join(&store).await;
    assert_eq!(count_unmatched(&store).await, 2, "each once");
    let matched = report(&store, node, vec![receipt("a", ABSENT)]).await;
    let [Matched::Ended(ended)] = &matched[..] else {
        panic!("{matched:?}")
    };
    assert_eq!(ended.id.get(), 2, "the newest use");
    // The messages are held by the node from before, which has the first number.
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
    assert_eq!(count_unmatched(&store).await, 0);
}
