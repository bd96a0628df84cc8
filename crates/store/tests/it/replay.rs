//! Which callbacks a list shows and a replay makes due.

use std::sync::Arc;

use domain::NodeId;
use domain::delivery::{CallbackNext, Receipt, Settlement};
use domain::message::Submission;
use domain::ports::{CallbackFilter, ListRange, Matched, ReplayCursor, Store};
use tokio::task::JoinSet;

use super::fixture::Database;
use super::sample::{EVERYTHING, accept};
use super::steps::{
    attempted, claim_callbacks, first_result, future, held, join, past, receipt, replay_all,
    report, settle, settle_callback, taken, url,
};

on_both_stores!(
    a_list_shows_matching_callbacks_newest_first,
    a_replay_makes_matching_callbacks_due,
    a_replay_skips_held_callbacks,
    a_replay_makes_waiting_callbacks_due,
    concurrent_replays_queue_each_callback_once,
);

/// Cases that need the database itself.
mod steps {
    use super::a_replay_locks_a_bounded_number_of_rows_at_once;

    on_both_databases!(a_replay_locks_a_bounded_number_of_rows_at_once);
}

/// Five reports, created one second after the other: 1 (parked) and 2 (done) to one host, 3 (parked) and 4 (waiting)
/// to another, and 5 (parked) to a host whose name starts like the first. Returns the node that held them.
async fn create_five_callbacks(store: &Arc<dyn Store>) -> NodeId {
    let node = join(store).await;
    for (id, address, next) in [
        (1, "https://one.example/a", CallbackNext::Parked),
        (2, "https://one.example/b", CallbackNext::Done),
        (3, "https://two.example/a", CallbackNext::Parked),
        (4, "https://two.example/b", CallbackNext::Later(future(0))),
        (5, "https://one.example.org/", CallbackNext::Parked),
    ] {
        let submission = Submission {
            dlr_url: Some(url(address)),
            ..held(id, node)
        };
        accept(store, vec![submission]).await;
        let reference = id.to_string();
        let answer: Settlement = first_result(id, taken(&[&reference]));
        settle(store, node, vec![answer]).await;
        let at = past(id.cast_signed());
        let receipt = Receipt {
            at,
            ..receipt(&reference, domain::Outcome::Delivered)
        };
        let matched = report(store, node, vec![receipt]).await;
        let [Matched::Ended(ended)] = &matched[..] else {
            panic!("{matched:?}")
        };
        let callback = ended.callback.as_ref().expect("held");
        assert!(settle_callback(store, node, attempted(callback, next, 9)).await);
    }
    node
}

fn filters() -> [(&'static str, CallbackFilter, Vec<u64>); 7] {
    let none = CallbackFilter::default();
    let prefix = |text: &str| CallbackFilter {
        url_prefix: Some(text.to_owned()),
        ..CallbackFilter::default()
    };
    [
        ("all open ones", none.clone(), vec![5, 4, 3, 1]),
        (
            "all",
            CallbackFilter {
                with_done: true,
                ..none.clone()
            },
            vec![5, 4, 3, 2, 1],
        ),
        ("a host", prefix("https://one.example/"), vec![1]),
        ("a longer prefix", prefix("https://two.example/b"), vec![4]),
        ("a prefix without a match", prefix("http:"), vec![]),
        (
            "a time",
            CallbackFilter {
                from: Some(past(2)),
                until: Some(past(5)),
                with_done: true,
                ..none.clone()
            },
            vec![4, 3, 2],
        ),
        (
            "both",
            CallbackFilter {
                from: Some(past(2)),
                ..prefix("https://one.example")
            },
            vec![5],
        ),
    ]
}

/// The messages that callbacks are about.
fn subjects<'a>(payloads: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let id = |payload: &str| payload.split('"').nth(3).and_then(|id| id.parse().ok());
    payloads
        .map(|payload| id(payload).expect("a report"))
        .collect()
}

async fn a_list_shows_matching_callbacks_newest_first(store: Arc<dyn Store>) {
    create_five_callbacks(&store).await;
    for (name, filter, expected) in filters() {
        let listed = store.list_callbacks(&filter, EVERYTHING).await;
        let listed = listed.expect("answers");
        let listed = subjects(listed.iter().map(|record| record.payload.as_str()));
        assert_eq!(listed, expected, "{name}");
    }
    let (limit, offset) = (2, 1);
    let page = store
        .list_callbacks(&CallbackFilter::default(), ListRange { limit, offset })
        .await;
    let page = page.expect("answers");
    let listed = subjects(page.iter().map(|record| record.payload.as_str()));
    assert_eq!(listed, [4, 3]);
    let one = CallbackFilter {
        id: Some(page[1].id),
        ..CallbackFilter::default()
    };
    let one = store.list_callbacks(&one, EVERYTHING).await;
    assert_eq!(one.expect("answers"), page[1..]);
}

async fn a_replay_makes_matching_callbacks_due(store: Arc<dyn Store>) {
    let node = create_five_callbacks(&store).await;
    for (name, filter, mut expected) in filters() {
        let replayed = replay_all(&store, &filter).await.expect("answers");
        assert_eq!(replayed, expected.len() as u64, "{name}");
        let claimed = claim_callbacks(&store, node).await;
        let mut due = subjects(claimed.iter().map(|callback| callback.payload.as_str()));
        due.sort_unstable();
        expected.sort_unstable();
        assert_eq!(due, expected, "{name}");
        for callback in claimed {
            let next = match subjects(std::iter::once(callback.payload.as_str()))[0] {
                2 => CallbackNext::Done,
                4 => CallbackNext::Later(future(0)),
                _ => CallbackNext::Parked,
            };
            assert!(settle_callback(&store, node, attempted(&callback, next, 10)).await);
        }
    }
}

async fn a_replay_skips_held_callbacks(store: Arc<dyn Store>) {
    let node = create_five_callbacks(&store).await;
    let everything = CallbackFilter::default();
    let replay = async || replay_all(&store, &everything).await.expect("answers");
    assert_eq!(replay().await, 4);
    let claimed = claim_callbacks(&store, node).await;
    assert_eq!(claimed.len(), 4);
    assert_eq!(replay().await, 0);
    for callback in &claimed {
        assert!(settle_callback(&store, node, attempted(callback, CallbackNext::Done, 10)).await);
    }
}

async fn a_replay_makes_waiting_callbacks_due(store: Arc<dyn Store>) {
    let node = create_five_callbacks(&store).await;
    assert_eq!(claim_callbacks(&store, node).await, []);
    let waiting = CallbackFilter {
        url_prefix: Some("https://two.example/b".to_owned()),
        ..CallbackFilter::default()
    };
    for _ in 0..2 {
        let replayed = replay_all(&store, &waiting).await;
        assert_eq!(replayed.expect("answers"), 1);
    }
    assert_eq!(claim_callbacks(&store, node).await.len(), 1);
}

/// With many parked and many waiting reports.
async fn a_replay_locks_a_bounded_number_of_rows_at_once(database: Database) {
    const EACH: i64 = 2_500;
    const LIMIT: u64 = 1_000;
    let store = database.open().await;
    let url = match database {
        Database::Sqlite(_) => "CAST('https://one.example/' AS BLOB)",
        Database::Postgres(_) => "CAST('https://one.example/' AS BYTEA)",
    };
    let queue_columns = match database {
        Database::Sqlite(_) => ("", ""),
        Database::Postgres(_) => (", message_id", ", message_id"),
    };
    let far = future(0).as_microsecond();
    let fill = format!(
        "INSERT INTO callback (account_id, message_id, url, payload, created_us, due_us, state, tries, kind)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {EACH})
        SELECT 1, i, {url}, 'x', 1, {far}, state, 0, 0 FROM n CROSS JOIN (SELECT 0 AS state UNION ALL SELECT 1) AS s;
        INSERT INTO callback_queue (owner, due_us, id, attempt{})
        SELECT 0, due_us, id, 0{} FROM callback WHERE state = 0",
        queue_columns.0, queue_columns.1
    );
    database.execute(&fill).await;
    let filter = CallbackFilter {
        url_prefix: Some("https://one.example/".to_owned()),
        ..CallbackFilter::default()
    };
    let due = "SELECT count(*) FROM callback_queue WHERE due_us < 4000000000000000";
    let (mut replayed, mut next) = (0, Some(ReplayCursor::START));
    while let Some(from) = next {
        let step = store
            .replay_callbacks(&filter, from)
            .await
            .expect("answers");
        assert!(step.count <= LIMIT, "{step:?}");
        replayed += step.count;
        let due = database.numbers(due, 1).await[0][0].expect("a number");
        assert_eq!(
            due.cast_unsigned(),
            replayed,
            "each step is committed before the next"
        );
        next = step.next;
    }
    assert_eq!(replayed, 2 * EACH.cast_unsigned());
    let again = replay_all(&store, &filter).await.expect("answers");
    assert_eq!(again, replayed, "they are due, and keep their position");
}

async fn concurrent_replays_queue_each_callback_once(store: Arc<dyn Store>) {
    let node = create_five_callbacks(&store).await;
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let everything = CallbackFilter::default();
            replay_all(&store, &everything).await.expect("answers")
        });
    }
    tasks.join_all().await;
    let claimed = claim_callbacks(&store, node).await;
    assert_eq!(claimed.len(), 4, "none is queued twice");
}
