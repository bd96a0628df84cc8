//! Claiming due messages.

use std::collections::HashMap;
use std::time::Instant;

use deadpool_postgres::{Object, Transaction};
use domain::delivery::QueuedMessage;
use domain::ids::NodeId;
use domain::kill_point::{KillPoint, pass};
use domain::ports::{Claimed, PoolClaim, SetAside};
use domain::{KeyRing, MessageId, Priority};
use tokio_postgres::Row;

use super::fault::Fault;
use super::retry::Retryable;
use super::scan_start::{Scan, ScanStart};
use super::transaction::commit;
use super::{codes, column, pool_claims};
use crate::rows::binds::SET_ASIDE;
use crate::rows::dispatch::{QueuedMessageColumns, code_text};
use crate::rows::{Corrupt, NOBODY, micros};

/// The columns of a claimed row, as `Row::read` reads them. The message of a row may be missing or unreadable.
macro_rules! queued_message_columns {
    () => {
        "taken.id, m.account_id, m.recipient, m.originator, m.body, m.coding, m.udh, m.parts, m.priority, m.test_mode,
        m.expires_us, taken.due_us, taken.attempt, m.channel, m.interactive, taken.owner, taken.tries, taken.lane,
        m.unknown_tries, m.trace, m.notice, m.carrier"
    };
}
pub(super) use queued_message_columns;

/// Skips rows that another node is claiming. Scheduled messages become queued. The first row has the time, and nothing
/// else if nothing was due.
const CLAIM: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT d.owner, d.lane, d.due_us, d.id
        FROM UNNEST($2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[])
            AS l (owner, lane, most, after_us, after_id)
        CROSS JOIN LATERAL (
            SELECT q.owner, q.lane, q.due_us, q.id FROM queue AS q
            WHERE q.owner = l.owner AND q.lane = l.lane AND (q.due_us, q.id) > (l.after_us, l.after_id)
                AND q.due_us <= ",
    now_us!(),
    " ORDER BY q.due_us, q.id LIMIT l.most FOR UPDATE SKIP LOCKED
        ) AS d
    ), taken AS (
        UPDATE queue AS q SET owner = $1, attempt = q.attempt + 1 FROM due
        WHERE q.owner = ANY(ARRAY[due.owner]) AND q.lane = due.lane AND q.due_us = due.due_us AND q.id = due.id
        RETURNING q.lane, q.due_us, q.id, q.attempt, q.tries, due.owner
    ), woken AS (
        UPDATE message AS m SET state = 0 FROM due WHERE m.id = ANY(ARRAY[due.id]) AND m.state = 1
    )
    SELECT ",
    queued_message_columns!(),
    ", clock.now_us
    FROM (SELECT ",
    now_us!(),
    ") AS clock (now_us) LEFT JOIN (taken LEFT JOIN message AS m ON m.id = taken.id) ON TRUE
    ORDER BY taken.lane, taken.due_us, taken.id"
);
/// The column of the time in [`CLAIM`].
const NOW: usize = 22;

/// Rows that cannot be read are not claimed again.
const SET_ASIDE_ROWS: &str = "
    UPDATE queue AS q SET owner = $1 FROM UNNEST($3::smallint[], $4::bigint[], $5::bigint[], $6::int[])
        AS g (lane, due_us, id, attempt)
    WHERE q.owner = $2 AND q.lane = g.lane AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt";

/// Claims messages that are due and that no node holds, up to a limit for each lane, and messages from route pools.
pub(super) struct Claims<'a> {
    pub(super) node: NodeId,
    pub(super) limits: [u32; 3],
    pub(super) pools: &'a [PoolClaim],
    pub(super) lanes: &'a Lanes,
    pub(super) keys: &'a KeyRing,
}

impl Retryable for Claims<'_> {
    type Output = Claimed;

    async fn run(&self, client: &mut Object) -> Result<Claimed, Fault> {
        let transaction = client.transaction().await?;
        let scans = self.lanes.begin();
        // Both statements are sent at once: one round trip.
        let (due, pooled) = tokio::try_join!(
            self.claim_unheld(&transaction, &scans),
            pool_claims::claim(&transaction, self.node, self.pools)
        )?;
        let mut claimed_rows = ClaimedRows::default();
        for row in due.iter().chain(&pooled.rows) {
            claimed_rows.read(row)?;
        }
        // Messages from pools follow, so all are sorted by lane again, the most urgent first.
        claimed_rows
            .messages
            .sort_by_key(|queued| queued.priority.lane());
        let texts = codes::find_texts(&transaction, &claimed_rows.messages).await?;
        if !texts.is_empty() {
            claimed_rows.reveal_codes(self.keys, &texts);
        }
        claimed_rows.set_aside(&transaction, self.node).await?;
        pass(KillPoint::ClaimInside);
        commit(transaction).await?;
        let clock = due.first().ok_or(Corrupt("clock"))?;
        self.lanes.end(
            &scans,
            self.limits,
            column(clock, NOW)?,
            &claimed_rows.messages,
        );
        Ok(Claimed {
            messages: claimed_rows.messages,
            more: pooled.more,
            set_aside: claimed_rows.set_aside,
        })
    }
}

impl Claims<'_> {
    async fn claim_unheld(
        &self,
        transaction: &Transaction<'_>,
        scans: &[Scan; 3],
    ) -> Result<Vec<Row>, Fault> {
        let lanes = Priority::ALL.map(Priority::lane);
        let most = self.limits.map(i64::from);
        let after_us = scans.each_ref().map(|scan| scan.after.0);
        let after_id = scans.each_ref().map(|scan| scan.after.1);
        let statement = transaction.prepare_cached(CLAIM).await?;
        let values: super::Values<'_> = &[
            &self.node.as_i64(),
            &[NOBODY; 3].as_slice(),
            &lanes.as_slice(),
            &most.as_slice(),
            &after_us.as_slice(),
            &after_id.as_slice(),
        ];
        Ok(transaction.query(&statement, values).await?)
    }
}

/// Claimed rows: readable ones become messages, the others are set aside.
#[derive(Default)]
struct ClaimedRows {
    messages: Vec<QueuedMessage>,
    set_aside: Vec<SetAside>,
    lane: Vec<i16>,
    due_us: Vec<i64>,
    id: Vec<i64>,
    attempt: Vec<i32>,
}

impl ClaimedRows {
    fn read(&mut self, row: &Row) -> Result<(), Corrupt> {
        let Some(id) = column(row, 0)? else {
            // It has only the time.
            return Ok(());
        };
        match queued(row, id) {
            Ok(queued) => self.messages.push(queued),
            Err(corrupt) => {
                let claim = (column(row, 11)?, column(row, 12)?);
                self.mark_unreadable(id, column(row, 17)?, claim, corrupt);
            }
        }
        Ok(())
    }

    /// Restores the texts of messages that carry codes. A message with an unreadable text is set aside.
    fn reveal_codes(&mut self, keys: &KeyRing, texts: &HashMap<MessageId, Vec<u8>>) {
        for mut queued in std::mem::take(&mut self.messages) {
            match texts
                .get(&queued.id)
                .map(|text| code_text(keys, &queued.to, text))
            {
                None => self.messages.push(queued),
                Some(Ok(text)) => {
                    queued.text = text;
                    self.messages.push(queued);
                }
                Some(Err(corrupt)) => {
                    let claim = (
                        micros(queued.claim.due_at),
                        queued.claim.attempt.cast_signed(),
                    );
                    self.mark_unreadable(
                        queued.id.as_i64(),
                        queued.priority.lane(),
                        claim,
                        corrupt,
                    );
                }
            }
        }
    }

    fn mark_unreadable(
        &mut self,
        id: i64,
        lane: i16,
        (due_us, attempt): (i64, i32),
        what: Corrupt,
    ) {
        self.lane.push(lane);
        self.due_us.push(due_us);
        self.id.push(id);
        self.attempt.push(attempt);
        let what = what.to_string();
        self.set_aside.push(SetAside { id, what });
    }

    async fn set_aside(&self, transaction: &Transaction<'_>, node: NodeId) -> Result<(), Fault> {
        if self.id.is_empty() {
            return Ok(());
        }
        let statement = transaction.prepare_cached(SET_ASIDE_ROWS).await?;
        let values: super::Values<'_> = &[
            &SET_ASIDE,
            &node.as_i64(),
            &self.lane,
            &self.due_us,
            &self.id,
            &self.attempt,
        ];
        transaction.execute(&statement, values).await?;
        Ok(())
    }
}

/// Where the next scan of each lane begins. Route pools are scanned from the beginning.
#[derive(Default)]
pub(super) struct Lanes([ScanStart; 3]);

impl Lanes {
    fn begin(&self) -> [Scan; 3] {
        let now = Instant::now();
        self.0.each_ref().map(|start| start.begin(now))
    }

    /// A lane with a limit of zero was not scanned.
    fn end(&self, scans: &[Scan; 3], limits: [u32; 3], now_us: i64, messages: &[QueuedMessage]) {
        let now = Instant::now();
        for (lane, limit) in (0..).zip(limits).filter(|(_, limit)| *limit > 0) {
            let of_lane =
                |queued: &&QueuedMessage| queued.pool.is_none() && queued.priority.lane() == lane;
            let found = messages.iter().filter(of_lane).count();
            let last = messages.iter().rfind(of_lane);
            let last = last.filter(|_| found >= limit as usize);
            let last = last.map(|queued| (micros(queued.claim.due_at), queued.id.as_i64()));
            let index = usize::from(lane.unsigned_abs());
            self.0[index].end(&scans[index], now, now_us, last);
        }
    }
}

fn queued(row: &Row, id: i64) -> Result<QueuedMessage, Corrupt> {
    let columns = QueuedMessageColumns {
        id,
        account_id: column(row, 1)?,
        recipient: column(row, 2)?,
        originator: column(row, 3)?,
        body: column(row, 4)?,
        coding: column(row, 5)?,
        udh: column(row, 6)?,
        parts: column(row, 7)?,
        priority: column(row, 8)?,
        test_mode: column(row, 9)?,
        expires_us: column(row, 10)?,
        due_us: column(row, 11)?,
        attempt: column(row, 12)?,
        channel: column(row, 13)?,
        interactive: column(row, 14)?,
        owner: column(row, 15)?,
        tries: column(row, 16)?,
        unknown_tries: column::<Option<i16>>(row, 18)?.unwrap_or(0),
        trace: column(row, 19)?,
        notice: column(row, 20)?,
        carrier: column(row, 21)?,
    };
    columns.queued()
}
