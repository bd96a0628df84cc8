//! The port for messages whose reports carriers ask for.

use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::MessageId;
use domain::ports::{AwaitedReport, DuePoll, PollStore, StoreError};

use super::{PostgresStore, Values};
use crate::rows::micros;
use crate::rows::polls::{LONGEST_PAUSE_US, in_micros, poll_columns, read_due};

const ADD: &str = concat!(
    "INSERT INTO report_poll (carrier, id, provider_id, taken_us, due_us, expires_us)
    SELECT g.carrier, g.id, g.provider_id, clock.now_us, clock.now_us + g.first_after_us, g.expires_us
    FROM (SELECT ",
    now_us!(),
    ") AS clock (now_us), UNNEST($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])
        AS g (carrier, id, provider_id, first_after_us, expires_us)
    ON CONFLICT (carrier, id) DO UPDATE SET provider_id = excluded.provider_id, taken_us = excluded.taken_us,
        due_us = excluded.due_us, expires_us = excluded.expires_us"
);
/// Skips rows that another node is claiming.
const CLAIM: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT id FROM report_poll WHERE carrier = $1 AND due_us <= ",
    now_us!(),
    " AND expires_us > ",
    now_us!(),
    " ORDER BY due_us LIMIT $4 FOR UPDATE SKIP LOCKED
    )
    UPDATE report_poll AS p SET due_us = clock.now_us + greatest($2::bigint, least($3::bigint, (clock.now_us - p.taken_us) / 4))
    FROM due, (SELECT ",
    now_us!(),
    ") AS clock (now_us)
    WHERE p.carrier = $1 AND p.id = ANY(ARRAY[due.id])
    RETURNING p.id, p.provider_id"
);
const REMOVE: &str = "DELETE FROM report_poll WHERE carrier = $1 AND id = ANY($2::bigint[])";
const PRUNE: &str = "
    WITH due AS MATERIALIZED (
        SELECT carrier, id FROM report_poll WHERE expires_us <= $1 ORDER BY expires_us LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM report_poll AS p USING due WHERE p.carrier = ANY(ARRAY[due.carrier]) AND p.id = ANY(ARRAY[due.id])";

#[async_trait]
impl PollStore for PostgresStore {
    async fn add_polls(&self, awaited: &[AwaitedReport]) -> Result<(), StoreError> {
        let polls = poll_columns(awaited);
        let carriers: Vec<&str> = polls.iter().map(|poll| poll.carrier.as_str()).collect();
        let ids: Vec<i64> = polls.iter().map(|poll| poll.id).collect();
        let theirs: Vec<&str> = polls.iter().map(|poll| poll.provider_id.as_str()).collect();
        let first_after_us: Vec<i64> = polls.iter().map(|poll| poll.first_after_us).collect();
        let expires_us: Vec<i64> = polls.iter().map(|poll| poll.expires_us).collect();
        let values: Values<'_> = &[&carriers, &ids, &theirs, &first_after_us, &expires_us];
        let added = self.execute("add messages to ask about", ADD, values).await;
        added.map(drop)
    }

    async fn claim_polls(
        &self,
        carrier: &str,
        interval: Duration,
        limit: u32,
    ) -> Result<Vec<DuePoll>, StoreError> {
        let values: Values<'_> = &[
            &carrier,
            &in_micros(interval),
            &LONGEST_PAUSE_US,
            &i64::from(limit),
        ];
        self.list("claim messages to ask about", CLAIM, values, read_due)
            .await
    }

    async fn remove_polls(&self, carrier: &str, ids: &[MessageId]) -> Result<(), StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        let values: Values<'_> = &[&carrier, &ids];
        let removed = self.execute("remove messages to ask about", REMOVE, values);
        removed.await.map(drop)
    }

    async fn prune_polls(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&micros(now), &i64::from(limit)];
        self.execute("prune messages to ask about", PRUNE, values)
            .await
    }
}
