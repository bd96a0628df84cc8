//! Claims of messages that are due.
//!
//! When the server goes away in the middle of the commit, nobody knows whether a claim was stored. If it was, its rows are
//! a node's that does not know of them, and as long as that node lives nobody else would send them. So a claim is
//! remembered until its outcome is known, and the next one first gives back what an earlier one may have taken.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use deadpool_postgres::{Object, Transaction};
use domain::delivery::Parcel;
use domain::ids::{NodeId, PoolId};
use domain::kill_point::{KillPoint, pass};
use tokio_postgres::Row;

use super::attempt::Attempt;
use super::column;
use super::fault::Fault;
use super::floor::{BEGINNING, Floor, Scan};
use crate::rows::dispatch::{self, ParcelColumns};
use crate::rows::{Corrupt, NOBODY, micros};

/// Rows that another node is claiming are left to it. What was scheduled is queued from now on. The first row tells the
/// time, and nothing else if nothing was due.
const CLAIM: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT d.owner, d.lane, d.due_us, d.id
        FROM UNNEST($2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[])
            AS l (owner, lane, most, behind_us, behind_id)
        CROSS JOIN LATERAL (
            SELECT q.owner, q.lane, q.due_us, q.id FROM queue AS q
            WHERE q.owner = l.owner AND q.lane = l.lane AND (q.due_us, q.id) > (l.behind_us, l.behind_id)
                AND q.due_us <= ",
    now_us!(),
    " ORDER BY q.due_us, q.id LIMIT l.most FOR UPDATE SKIP LOCKED
        ) AS d
    ), taken AS (
        UPDATE queue AS q SET owner = $1, attempt = q.attempt + 1 FROM due
        WHERE q.owner = due.owner AND q.lane = due.lane AND q.due_us = due.due_us AND q.id = due.id
        RETURNING q.lane, q.due_us, q.id, q.attempt, due.owner
    ), woken AS (
        UPDATE message AS m SET state = 0 FROM due WHERE m.id = due.id AND m.state = 1
    )
    SELECT m.id, m.account_id, m.recipient, m.originator, m.body, m.coding, m.udh, m.parts, m.priority, m.test_mode,
        m.expires_us, taken.due_us, taken.attempt, m.channel, m.interactive, taken.owner, clock.now_us,
        m.unknown_tries
    FROM (SELECT ",
    now_us!(),
    ") AS clock (now_us) LEFT JOIN (taken JOIN message AS m ON m.id = taken.id) ON TRUE
    ORDER BY taken.lane, taken.due_us, taken.id"
);
/// The number of the claim is the fence: what is nobody's, or was claimed again since, is left alone.
const GIVE_BACK: &str = "
    UPDATE queue AS q SET owner = 0
    FROM UNNEST($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::int[])
        AS g (owner, lane, due_us, id, attempt)
    WHERE q.owner = g.owner AND q.lane = g.lane AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt";

/// A claim of what is due and nobody's, or a pool's, at most so much of each lane.
pub(super) struct Claims<'a> {
    pub(super) node: NodeId,
    pub(super) limits: [u32; 3],
    pub(super) pools: &'a [(PoolId, [u32; 3])],
    pub(super) unsure: &'a Unsure,
    pub(super) lanes: &'a Lanes,
}

impl Attempt for Claims<'_> {
    type Output = Vec<Parcel>;

    async fn run(&self, client: &mut Object) -> Result<Vec<Parcel>, Fault> {
        let mut outcome = Outcome::of(self.unsure);
        let transaction = client.transaction().await?;
        outcome.rows.give_back(&transaction).await?;
        let scans = self.lanes.begin();
        let (mut owners, mut lanes, mut most) = (Vec::new(), Vec::new(), Vec::new());
        let (mut behind_us, mut behind_id) = (Vec::new(), Vec::new());
        for (owner, lane, limit) in dispatch::ranges(self.limits, self.pools) {
            owners.push(owner);
            lanes.push(lane);
            most.push(i64::from(limit));
            let behind = if owner == NOBODY {
                scans[usize::from(lane.unsigned_abs())].behind
            } else {
                BEGINNING
            };
            behind_us.push(behind.0);
            behind_id.push(behind.1);
        }
        let statement = transaction.prepare_cached(CLAIM).await?;
        let node = self.node.as_i64();
        let values: super::Values<'_> = &[&node, &owners, &lanes, &most, &behind_us, &behind_id];
        let claimed = transaction.query(&statement, values).await?;
        let parcels: Result<Vec<Parcel>, Corrupt> = claimed
            .iter()
            .filter_map(|row| parcel(row).transpose())
            .collect();
        let parcels = parcels?;
        outcome.rows.push_all(self.node, &parcels);
        pass(KillPoint::ClaimInside);
        transaction.commit().await?;
        outcome.forget();
        let clock = claimed.first().ok_or(Corrupt("clock"))?;
        self.lanes
            .end(&scans, self.limits, column(clock, 16)?, &parcels);
        Ok(parcels)
    }
}

/// Where the next scan of each lane begins, of what is nobody's; what is a pool's is scanned from the beginning.
#[derive(Default)]
pub(super) struct Lanes([Floor; 3]);

impl Lanes {
    fn begin(&self) -> [Scan; 3] {
        let now = Instant::now();
        self.0.each_ref().map(|floor| floor.begin(now))
    }

    /// A lane in which nothing was wanted was not looked at.
    fn end(&self, scans: &[Scan; 3], limits: [u32; 3], now_us: i64, parcels: &[Parcel]) {
        let now = Instant::now();
        for (lane, limit) in (0..).zip(limits).filter(|(_, limit)| *limit > 0) {
            let of_lane =
                |parcel: &&Parcel| parcel.pool.is_none() && parcel.priority.lane() == lane;
            let found = parcels.iter().filter(of_lane).count();
            let last = parcels.iter().rfind(of_lane);
            let last = last.filter(|_| found >= limit as usize);
            let last = last.map(|parcel| (micros(parcel.claim.due_at), parcel.id.as_i64()));
            let place = usize::from(lane.unsigned_abs());
            self.0[place].end(&scans[place], now, now_us, last);
        }
    }
}

/// Claims whose outcome is unknown.
#[derive(Default)]
pub(super) struct Unsure(Mutex<Rows>);

/// The earlier claims that this one gives back, and this one itself. Unless its outcome becomes known, all are
/// remembered, also when it is given up in the middle.
struct Outcome<'a> {
    unsure: &'a Unsure,
    rows: Rows,
}

impl<'a> Outcome<'a> {
    fn of(unsure: &'a Unsure) -> Self {
        let mut remembered = unsure.0.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            unsure,
            rows: mem::take(&mut *remembered),
        }
    }

    /// The outcome is known: nothing is to be given back.
    fn forget(mut self) {
        self.rows = Rows::default();
    }
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        if !self.rows.id.is_empty() {
            let remembered = self.unsure.0.lock();
            remembered
                .unwrap_or_else(PoisonError::into_inner)
                .append(&mut self.rows);
        }
    }
}

/// Claimed rows of the queue, as [`GIVE_BACK`] takes them.
#[derive(Default)]
struct Rows {
    owner: Vec<i64>,
    lane: Vec<i16>,
    due_us: Vec<i64>,
    id: Vec<i64>,
    attempt: Vec<i32>,
}

impl Rows {
    fn push_all(&mut self, node: NodeId, parcels: &[Parcel]) {
        for parcel in parcels {
            self.owner.push(node.as_i64());
            self.lane.push(parcel.priority.lane());
            self.due_us.push(micros(parcel.claim.due_at));
            self.id.push(parcel.id.as_i64());
            self.attempt.push(dispatch::attempt(&parcel.claim));
        }
    }

    fn append(&mut self, others: &mut Self) {
        self.owner.append(&mut others.owner);
        self.lane.append(&mut others.lane);
        self.due_us.append(&mut others.due_us);
        self.id.append(&mut others.id);
        self.attempt.append(&mut others.attempt);
    }

    async fn give_back(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        if self.id.is_empty() {
            return Ok(());
        }
        let statement = transaction.prepare_cached(GIVE_BACK).await?;
        let values: super::Values<'_> = &[
            &self.owner,
            &self.lane,
            &self.due_us,
            &self.id,
            &self.attempt,
        ];
        let given_back = transaction.execute(&statement, values).await?;
        if given_back > 0 {
            tracing::info!(given_back, "messages of an unknown claim wait again");
        }
        Ok(())
    }
}

/// `None` for the row that only tells the time.
fn parcel(row: &Row) -> Result<Option<Parcel>, Corrupt> {
    let Some(id) = column(row, 0)? else {
        return Ok(None);
    };
    let columns = ParcelColumns {
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
        unknown_tries: column(row, 17)?,
    };
    columns.parcel().map(Some)
}
