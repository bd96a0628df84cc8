//! Refused messages: they end in the transaction that stores them.

use deadpool_postgres::Transaction;
use domain::Outcome;
use domain::message::Submission;
use domain::message::outcome::TakenParts;

use super::day_statements::DayStatements;
use super::ending::{self, PartReport};
use super::fault::Fault;
use super::transaction::execute;
use crate::rows::{SendColumns, micros};

/// They were queued like the others. A scheduled message that has ended does not wait for its time.
const UNQUEUE: &str = "
    WITH given AS MATERIALIZED (
        SELECT * FROM UNNEST($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[]) AS g (owner, lane, due_us, id)
    ), removed AS (
        DELETE FROM queue AS q USING given AS g
        WHERE q.owner = ANY(ARRAY[g.owner]) AND q.lane = g.lane AND q.due_us = g.due_us AND q.id = g.id
    )
    UPDATE message AS m SET state = 0 FROM given AS g WHERE m.id = ANY(ARRAY[g.id]) AND m.state = 1";
const MARK_NOTICES: &str = "UPDATE message SET notice = 1 WHERE id = ANY($1::bigint[])";

/// Ends the refused messages of submissions that were just stored.
pub(super) async fn end<'a>(
    transaction: &Transaction<'_>,
    days: &DayStatements,
    stored: impl Iterator<Item = &'a Submission>,
) -> Result<(), Fault> {
    let (mut owners, mut lanes, mut due, mut ids) = (vec![], vec![], vec![], vec![]);
    let mut reports = Vec::new();
    for submission in stored.filter(|submission| submission.has_refused()) {
        let owner = SendColumns::from_submission(submission).owner;
        for recipient in &submission.recipients {
            let Some(code) = recipient.refused else {
                continue;
            };
            owners.push(owner);
            lanes.push(submission.priority.lane());
            due.push(micros(submission.due_at()));
            ids.push(recipient.id.as_i64());
            reports.push(PartReport {
                id: recipient.id.as_i64(),
                parts: 1,
                outcome: Outcome::Failed(code),
                taken: TakenParts::Only(0),
                at_us: micros(submission.accepted_at),
                report: None,
                network: None,
                sent: None,
            });
        }
    }
    if reports.is_empty() {
        return Ok(());
    }
    execute(transaction, UNQUEUE, &[&owners, &lanes, &due, &ids]).await?;
    ending::report(transaction, days, None, &reports)
        .await
        .map(drop)
}

/// Stores which messages are of the service itself. They are few, so this is not part of the insert.
pub(super) async fn mark_notices<'a>(
    transaction: &Transaction<'_>,
    stored: impl Iterator<Item = &'a Submission>,
) -> Result<(), Fault> {
    let notices = stored.filter(|submission| submission.notice);
    let recipients = notices.flat_map(|submission| &submission.recipients);
    let ids: Vec<i64> = recipients.map(|recipient| recipient.id.as_i64()).collect();
    if !ids.is_empty() {
        execute(transaction, MARK_NOTICES, &[&ids]).await?;
    }
    Ok(())
}
