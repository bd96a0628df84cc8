//! Replacing a scheduled message.

use std::cmp::Ordering;

use deadpool_postgres::Object;
use domain::billing::NotPaid;
use domain::message::Submission;
use domain::{Money, Network};

use super::billing::BatchCharges;
use super::fault::Fault;
use super::retry::Retryable;
use super::transaction::{commit, execute, find};
use super::{billing, column};
use crate::rows::dispatch::NO_ACCOUNT;
use crate::rows::{NOBODY, micros, traffic};
use crate::sql::messages as sql;

/// Takes the row of a scheduled message out of the queue. A claim, a cancellation or another replacement that came first
/// leaves nothing to take.
const TAKE: &str = "
    WITH waiting AS MATERIALIZED (
        SELECT 0::bigint AS owner, priority, scheduled_us, id, price_micros FROM message
        WHERE id = $1 AND account_id = $2 AND state = 1 AND channel = 0
    )
    DELETE FROM queue AS q USING waiting AS w
    WHERE q.owner = ANY(ARRAY[w.owner]) AND q.lane = w.priority AND q.due_us = w.scheduled_us AND q.id = w.id
    RETURNING q.lane, w.price_micros";
/// The row is new, even if the time is the same: a claim whose snapshot is older would find a changed row, but read the
/// old text.
const PUT_BACK: &str = "
    INSERT INTO queue (owner, lane, due_us, id, attempt, account_id, expires_us)
    VALUES ($1, $2, $3, $4, 0, $5, NULL)";

/// Replaces a message and settles the difference of the prices. Returns whether it was waiting.
pub(super) struct ReplaceMessage(pub(super) Submission);

impl Retryable for ReplaceMessage {
    type Output = Result<bool, NotPaid>;

    async fn run(&self, client: &mut Object) -> Result<Self::Output, Fault> {
        let by = &self.0;
        let recipient = &by.recipients[0];
        let (id, account) = (recipient.id.as_i64(), by.account.as_i64());
        let transaction = client.transaction().await?;
        let Some(taken) = find(&transaction, TAKE, &[&id, &account]).await? else {
            return Ok(Ok(false));
        };
        let (lane, before) = (column::<i16>(&taken, 0)?, column::<i64>(&taken, 1)?);
        let (price, due_us) = (recipient.price.micros(), micros(by.due_at()));
        let values: super::Values<'_> = &[
            &id,
            &by.text.as_bytes(),
            &i16::from(by.shape.coding.number()),
            &by.coding_given,
            &i16::from(by.shape.parts),
            &by.dlr_url.as_ref().map(|url| url.as_str().as_bytes()),
            &due_us,
            &micros(by.expires_at),
            &price,
            &recipient.network.map(Network::code),
            &traffic::country_column(recipient),
        ];
        execute(&transaction, sql::REPLACE.postgres, values).await?;
        let values: super::Values<'_> = &[&NOBODY, &lane, &due_us, &id, &NO_ACCOUNT];
        execute(&transaction, PUT_BACK, values).await?;
        // The account is locked last, as where messages are cancelled.
        let more = price - before;
        match more.cmp(&0) {
            Ordering::Greater => {
                let more = Money::from_micros(more);
                let charged =
                    BatchCharges::charge_more(&transaction, account, more, by.accepted_at);
                if let Err(not_paid) = charged.await? {
                    return Ok(Err(not_paid));
                }
            }
            Ordering::Less => {
                billing::give_back(&transaction, account, -more, micros(by.accepted_at)).await?;
            }
            Ordering::Equal => {}
        }
        commit(transaction).await?;
        Ok(Ok(true))
    }
}
