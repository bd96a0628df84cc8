//! Columns that no port reads back: those of a message and of its queue row.

use domain::Outcome;
use domain::delivery::SendResult;
use domain::message::text::{Coding, Shape, Udh};
use domain::message::{Priority, Submission, TestMode};

use super::fixture::Database;
use super::lookups::lookup;
use super::sample::{accept, account, at, message, scheduled, submission};
use super::steps::{deliver, first_result, join, receipt, settle};

const MESSAGE: &str = "
    SELECT CAST(id AS BIGINT), account_id, recipient, CAST(coding AS BIGINT),
        CAST(CASE WHEN coding_given THEN 1 ELSE 0 END AS BIGINT), CAST(length(udh) AS BIGINT), CAST(parts AS BIGINT),
        CAST(priority AS BIGINT), CAST(test_mode AS BIGINT), accepted_us, scheduled_us, expires_us,
        CAST(state AS BIGINT), final_us
    FROM message ORDER BY id";
const QUEUE: &str = "
    SELECT CAST(lane AS BIGINT), due_us, id, CAST(attempt AS BIGINT) FROM queue ORDER BY lane, due_us, id";

/// A message with unusual values in every column but the plain texts.
fn rare() -> Submission {
    Submission {
        account: account(9),
        shape: Shape {
            coding: Coding::Binary,
            parts: 255,
        },
        udh: Some(Udh::from_bytes(&[5, 0, 3, 42, 2, 1]).expect("a header")),
        coding_given: true,
        priority: Priority::Low,
        accepted_at: at(3),
        expires_at: at(30),
        test_mode: Some(TestMode::Fail),
        ..scheduled(2, 20)
    }
}

async fn every_column_is_stored(database: Database) {
    let us = |second| Some(at(second).as_microsecond());
    let store = database.open().await;
    let urgent = Submission {
        priority: Priority::High,
        ..submission(3, 1)
    };
    accept(&store, vec![submission(1, 1), rare(), urgent]).await;

    let plain = |id, lane| {
        let number = Some(37_120_000_000 + id);
        [
            Some(id),
            Some(1),
            number,
            Some(0),
            Some(0),
            None,
            Some(1),
            Some(lane),
            None,
            us(0),
            None,
            us(259_200),
            Some(0),
            None,
        ]
    };
    let rare = [
        Some(2),
        Some(9),
        Some(37_120_000_002),
        Some(1),
        Some(1),
        Some(6),
        Some(255),
        Some(2),
        Some(2),
        us(3),
        us(20),
        us(30),
        Some(1),
        None,
    ];
    assert_eq!(
        database.numbers(MESSAGE, 14).await,
        [plain(1, 1), rare, plain(3, 0)]
    );
    let waiting = [
        [Some(0), us(0), Some(3), Some(0)],
        [Some(1), us(0), Some(1), Some(0)],
        [Some(2), us(20), Some(2), Some(0)],
    ];
    assert_eq!(database.numbers(QUEUE, 4).await, waiting);

    store
        .cancel(account(9), message(2), at(7))
        .await
        .expect("the store answers");
    assert_eq!(database.numbers(QUEUE, 4).await, waiting[..2]);
    assert_eq!(
        database.numbers(MESSAGE, 14).await[1][12..],
        [Some(2), us(7)]
    );
}

/// As if a worker had just claimed the message.
async fn a_message_without_a_queue_row_is_not_cancelled(database: Database) {
    use domain::message::MessageState;
    use domain::ports::Cancel;

    let store = database.open().await;
    accept(&store, vec![scheduled(1, 20)]).await;
    database.execute("DELETE FROM queue").await;
    let outcome = store
        .cancel(account(1), message(1), at(7))
        .await
        .expect("the store answers");
    assert_eq!(outcome, Cancel::NotWaiting(MessageState::Queued));
    assert_eq!(
        database.numbers(MESSAGE, 14).await[0][12..],
        [Some(1), None]
    );
}

/// A report has its own URL and payload only where they cannot be derived from its message.
async fn a_report_does_not_repeat_data_of_its_message(database: Database) {
    const STORED: &str = "
        SELECT message_id, CAST(kind AS BIGINT), CAST(length(url) AS BIGINT), CAST(length(payload) AS BIGINT)
        FROM callback ORDER BY id";

    let store = database.open().await;
    let node = join(&store).await;
    let callback = deliver(&store, node, 1).await;
    accept(&store, vec![lookup(2, node)]).await;
    let answered = SendResult::Answered {
        carrier: Some("alpha".to_owned()),
        outcome: Outcome::Delivered,
        report: r#"{"id":"2","error":0}"#.to_owned(),
    };
    settle(&store, node, vec![first_result(2, answered)]).await;
    let carrier_ref = receipt("ref-1", Outcome::Delivered).of;
    assert!(store.mark_seen(&carrier_ref, at(9)).await.expect("answers"));
    let (url, seen) = (
        callback.url.as_str().len(),
        r#"{"id":"1","status":3,"error":0}"#.len(),
    );
    let number = |length| i64::try_from(length).ok();
    let expected = [
        [Some(1), Some(0), None, None],
        [Some(2), Some(1), None, None],
        [Some(1), Some(0), number(url), number(seen)],
    ];
    assert_eq!(database.numbers(STORED, 4).await, expected);
}

on_both_databases!(
    every_column_is_stored,
    a_message_without_a_queue_row_is_not_cancelled,
    a_report_does_not_repeat_data_of_its_message,
);
