//! The port for messages whose reports carriers ask for.

use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::MessageId;
use domain::ports::{AwaitedReport, DuePoll, PollStore, StoreError};
use rusqlite::{Connection, Result, params};

use super::{SqliteStore, clock};
use crate::rows::micros;
use crate::rows::polls::{LONGEST_PAUSE_US, PollColumns, in_micros, poll_columns, read_due};

const ADD: &str = "
    INSERT INTO report_poll (carrier, id, provider_id, taken_us, due_us, expires_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (carrier, id) DO UPDATE SET provider_id = excluded.provider_id, taken_us = excluded.taken_us,
        due_us = excluded.due_us, expires_us = excluded.expires_us";
const CLAIM: &str = "
    UPDATE report_poll SET due_us = ?2 + max(?3, min(?4, (?2 - taken_us) / 4))
    WHERE carrier = ?1 AND id IN (
        SELECT id FROM report_poll WHERE carrier = ?1 AND due_us <= ?2 AND expires_us > ?2 ORDER BY due_us LIMIT ?5
    )
    RETURNING id, provider_id";
const REMOVE: &str = "DELETE FROM report_poll WHERE carrier = ?1 AND id = ?2";

const PRUNE: &str = "
    DELETE FROM report_poll WHERE (carrier, id) IN (
        SELECT carrier, id FROM report_poll WHERE expires_us <= ?1 ORDER BY expires_us LIMIT ?2
    )";

fn add(db: &Connection, polls: &[PollColumns]) -> Result<()> {
    let now_us = clock::now_us(db)?;
    let mut add = db.prepare_cached(ADD)?;
    for poll in polls {
        let due_us = now_us.saturating_add(poll.first_after_us);
        add.execute(params![
            poll.carrier,
            poll.id,
            poll.provider_id,
            now_us,
            due_us,
            poll.expires_us
        ])?;
    }
    Ok(())
}

#[async_trait]
impl PollStore for SqliteStore {
    async fn add_polls(&self, awaited: &[AwaitedReport]) -> Result<(), StoreError> {
        let polls = poll_columns(awaited);
        self.write("add messages to ask about", move |db| add(db, &polls))
            .await
    }

    async fn claim_polls(
        &self,
        carrier: &str,
        interval: Duration,
        limit: u32,
    ) -> Result<Vec<DuePoll>, StoreError> {
        let carrier = carrier.to_owned();
        self.write("claim messages to ask about", move |db| {
            let now_us = clock::now_us(db)?;
            let values = params![
                carrier,
                now_us,
                in_micros(interval),
                LONGEST_PAUSE_US,
                limit
            ];
            let mut claim = db.prepare_cached(CLAIM)?;
            claim.query_map(values, |row| read_due(row))?.collect()
        })
        .await
    }

    async fn remove_polls(&self, carrier: &str, ids: &[MessageId]) -> Result<(), StoreError> {
        let carrier = carrier.to_owned();
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        self.write("remove messages to ask about", move |db| {
            let mut remove = db.prepare_cached(REMOVE)?;
            for id in &ids {
                remove.execute(params![carrier, id])?;
            }
            Ok(())
        })
        .await
    }

    async fn prune_polls(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune messages to ask about", move |db| {
            let mut prune = db.prepare_cached(PRUNE)?;
            Ok(prune.execute(params![micros(now), limit])? as u64)
        })
        .await
    }
}
