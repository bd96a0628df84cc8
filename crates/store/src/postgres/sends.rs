//! Settles attempts to send messages.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{Object, Transaction};
use domain::Money;
use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{SendResult, Settlement};
use domain::ids::NodeId;
use domain::kill_point::{KillPoint, pass};
use domain::message::outcome::TakenParts;
use tokio_postgres::Row;

use super::carrier_refs::{self, PartRefs, count};
use super::column;
use super::day_statements::DayStatements;
use super::ending::{self, PartReport, Progress};
use super::fault::Fault;
use super::retry::Retryable;
use super::transaction::commit;
use crate::rows::binds::SET_ASIDE;
use crate::rows::dispatch::{self, Ending, Move};
use crate::rows::ended::{EndedColumns, SettledColumns};
use crate::rows::records::SentColumns;
use crate::rows::{Corrupt, micros};

/// Moves queue rows, and stores the reference of the first part of each message that a carrier took. Most messages have
/// one part.
const MOVE: &str = "
    WITH given AS MATERIALIZED (
        SELECT $1::bigint AS node, g.*
        FROM UNNEST($2::bigint[], $3::smallint[], $4::bigint[], $5::int[], $6::bigint[], $7::smallint[], $8::bigint[],
            $9::text[], $10::bytea[], $11::smallint[], $12::bigint[], $13::int[], $14::bigint[], $15::bigint[], $16::int[],
            $17::bigint[])
            AS g (id, lane, due_us, attempt, owner, to_lane, to_us, carrier, reference, parts, at_us, tries, account_id,
                expires_us, tail, cost_micros)
    ), moved AS (
        UPDATE queue AS q SET owner = g.owner, lane = g.to_lane, due_us = g.to_us, tries = q.tries + g.tries,
            account_id = g.account_id, expires_us = g.expires_us
        FROM given AS g
        WHERE q.owner = ANY(ARRAY[g.node]) AND q.lane = g.lane AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt
        RETURNING g.id, g.carrier, g.reference, g.parts, g.at_us, g.tail, g.cost_micros
    ), named AS (
        INSERT INTO transit (carrier, reference, id, part, parts, taken_us, tail, cost_micros)
        SELECT carrier, reference, id, 1, parts, at_us, tail, cost_micros FROM moved WHERE reference IS NOT NULL
    )
    SELECT id FROM moved";
const REMOVE: &str = "
    WITH given AS MATERIALIZED (
        SELECT $1::bigint AS node, g.*
        FROM UNNEST($2::bigint[], $3::smallint[], $4::bigint[], $5::int[]) AS g (id, lane, due_us, attempt)
    )
    DELETE FROM queue AS q USING given AS g
    WHERE q.owner = ANY(ARRAY[g.node]) AND q.lane = g.lane AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt
    RETURNING q.id";
/// Until the message ends, its carrier is the one that did not answer.
const COUNT_UNKNOWN: &str = "
    UPDATE message AS m SET unknown_tries = m.unknown_tries + 1, carrier = g.carrier
    FROM UNNEST($1::bigint[], $2::text[]) AS g (id, carrier) WHERE m.id = ANY(ARRAY[g.id])";
const REMOVE_EXPIRED: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT owner, lane, due_us, id FROM queue WHERE owner = -1 AND lane = 0 AND due_us <= ",
    now_us!(),
    " ORDER BY due_us, id LIMIT $1 FOR UPDATE SKIP LOCKED
    ), removed AS (
        DELETE FROM queue AS q USING due
        WHERE q.owner = ANY(ARRAY[due.owner]) AND q.lane = due.lane AND q.due_us = due.due_us AND q.id = due.id
        RETURNING q.id
    )
    SELECT removed.id, ",
    now_us!(),
    ", TRUE, t.carrier, t.taken_us, t.cost_micros FROM removed LEFT JOIN LATERAL (
        SELECT carrier, taken_us, cost_micros FROM transit WHERE transit.id = removed.id
        ORDER BY taken_us DESC LIMIT 1
    ) AS t ON TRUE"
);

const REMOVE_EXPIRED_POOLED: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT owner, lane, due_us, id FROM queue WHERE owner < -1 AND owner <> $2 AND expires_us <= ",
    now_us!(),
    " ORDER BY expires_us LIMIT $1 FOR UPDATE SKIP LOCKED
    ), removed AS (
        DELETE FROM queue AS q USING due
        WHERE q.owner = ANY(ARRAY[due.owner]) AND q.lane = due.lane AND q.due_us = due.due_us AND q.id = due.id
        RETURNING q.id
    )
    SELECT removed.id, ",
    now_us!(),
    ", coalesce(m.unknown_tries, 0) > 0, NULL::text, NULL::bigint, NULL::bigint
    FROM removed LEFT JOIN message AS m ON m.id = removed.id"
);

/// A batch of results.
pub(super) struct Sends<'a> {
    pub(super) node: NodeId,
    pub(super) batch: &'a [Settlement],
    pub(super) hold: bool,
    pub(super) days: &'a DayStatements,
}

impl Retryable for Sends<'_> {
    type Output = Vec<SettledColumns>;

    async fn run(&self, client: &mut Object) -> Result<Vec<SettledColumns>, Fault> {
        let plan = Plan::from_batch(self.batch);
        let transaction = client.transaction().await?;
        let mut settled = HashSet::with_capacity(self.batch.len());
        if !plan.moves.keys.id.is_empty() {
            plan.moves
                .run(&transaction, self.node, &mut settled)
                .await?;
        }
        let mut reports = Vec::new();
        if !plan.removals.id.is_empty() {
            remove(&transaction, self.node, &plan, &mut settled, &mut reports).await?;
        }
        carrier_refs::store_remaining(&transaction, &plan.refs, &settled).await?;
        plan.count_unknown(&transaction, &settled).await?;
        let holder = self.hold.then_some(self.node);
        let ended = finish(&transaction, self.days, holder, &reports).await?;
        pass(KillPoint::SettleInside);
        commit(transaction).await?;
        Ok(answers(self.batch, &mut settled, ended))
    }
}

/// The result of each settlement, in the order of the batch.
fn answers(
    batch: &[Settlement],
    settled: &mut HashSet<i64>,
    ended: Vec<EndedColumns>,
) -> Vec<SettledColumns> {
    let mut ended: HashMap<i64, EndedColumns> = ended
        .into_iter()
        .map(|columns| (columns.id, columns))
        .collect();
    let mut answer = |settlement: &Settlement| {
        let id = settlement.id.as_i64();
        if !settled.remove(&id) {
            return SettledColumns::Stale;
        }
        let ended = ended.remove(&id);
        ended.map_or(SettledColumns::Stored, SettledColumns::Ended)
    };
    batch.iter().map(&mut answer).collect()
}

/// Ends the messages that these reports end.
async fn finish(
    transaction: &Transaction<'_>,
    days: &DayStatements,
    holder: Option<NodeId>,
    reports: &[PartReport],
) -> Result<Vec<EndedColumns>, Fault> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let progress = ending::report(transaction, days, holder, reports).await?;
    let ended = progress.into_iter().filter_map(|progress| match progress {
        Progress::Ended(columns) => Some(columns),
        Progress::Open | Progress::AlreadyEnded => None,
    });
    Ok(ended.collect())
}

/// Removes finished messages from the queue.
async fn remove(
    transaction: &Transaction<'_>,
    node: NodeId,
    plan: &Plan<'_>,
    settled: &mut HashSet<i64>,
    reports: &mut Vec<PartReport>,
) -> Result<(), Fault> {
    let removals = &plan.removals;
    let statement = transaction.prepare_cached(REMOVE).await?;
    let values: super::Values<'_> = &[
        &node.as_i64(),
        &removals.id,
        &removals.lane,
        &removals.due_us,
        &removals.attempt,
    ];
    for row in transaction.query(&statement, values).await? {
        settled.insert(column(&row, 0)?);
    }
    let ending = plan
        .endings
        .iter()
        .filter(|ended| settled.contains(&ended.id));
    reports.extend(ending.map(|ended| PartReport {
        id: ended.id,
        parts: 1,
        outcome: ended.ending.outcome,
        taken: ended.ending.taken_parts(),
        at_us: ended.at_us,
        report: ended.ending.report.map(str::to_owned),
        network: None,
        sent: ended.ending.carrier().map(|carrier| SentColumns {
            carrier: carrier.to_owned(),
            at_us: ended.at_us,
            cost_micros: ended.cost_micros,
        }),
    }));
    Ok(())
}

/// The keys of queue rows that are settled.
#[derive(Default)]
struct QueueRowKeys {
    id: Vec<i64>,
    lane: Vec<i16>,
    due_us: Vec<i64>,
    attempt: Vec<i32>,
}

impl QueueRowKeys {
    fn push(&mut self, settlement: &Settlement) {
        self.id.push(settlement.id.as_i64());
        self.lane.push(settlement.priority.lane());
        self.due_us.push(micros(settlement.claim.due_at));
        self.attempt.push(dispatch::attempt(&settlement.claim));
    }
}

/// An attempt that ended its message.
struct EndedAttempt<'a> {
    id: i64,
    at_us: i64,
    cost_micros: Option<i64>,
    ending: Ending<'a>,
}

/// A batch, grouped by what to do with its rows.
#[derive(Default)]
struct Plan<'a> {
    moves: Moves<'a>,
    refs: Vec<PartRefs<'a>>,
    removals: QueueRowKeys,
    endings: Vec<EndedAttempt<'a>>,
    /// Messages with an attempt of unknown outcome, and their carriers.
    unknown: Vec<(i64, &'a str)>,
}

impl<'a> Plan<'a> {
    /// Sorted by ID, because rows are locked in that order. If a message has two results, the first one counts.
    fn from_batch(batch: &'a [Settlement]) -> Self {
        let mut ordered: Vec<&Settlement> = batch.iter().collect();
        ordered.sort_by_key(|settlement| settlement.id);
        ordered.dedup_by_key(|settlement| settlement.id);
        let mut plan = Self::default();
        for settlement in ordered {
            plan.push(settlement);
        }
        plan
    }

    fn push(&mut self, settlement: &'a Settlement) {
        let (id, at_us) = (settlement.id.as_i64(), micros(settlement.at));
        let tail = NumberTail::from_number(&settlement.to).as_i32();
        let cost_micros = settlement.cost.map(Money::micros);
        let part_refs =
            |(carrier, references): &(&'a str, Vec<&'a str>), is_first_stored| PartRefs {
                id,
                carrier,
                references: references.clone(),
                at_us,
                tail,
                cost_micros,
                is_first_stored,
            };
        match Move::from_settlement(settlement) {
            Move::To {
                owner,
                lane,
                due_us,
                tries,
                pool_account,
                pool_expires_us,
                taken,
            } => {
                self.moves.keys.push(settlement);
                self.moves.push(owner, lane, due_us, at_us);
                self.moves.tries.push(tries);
                self.moves.pool_account.push(pool_account);
                self.moves.pool_expires_us.push(pool_expires_us);
                self.moves.push_taken(taken.as_ref(), tail);
                self.moves.cost_micros.push(cost_micros);
                let taken = taken
                    .as_ref()
                    .filter(|(_, references)| !references.is_empty());
                self.refs.extend(taken.map(|taken| part_refs(taken, true)));
                if let SendResult::Unknown { carrier, .. } = &settlement.sent {
                    self.unknown.push((id, carrier));
                }
            }
            Move::Remove(ending) => {
                self.removals.push(settlement);
                self.refs
                    .extend(ending.taken.as_ref().map(|taken| part_refs(taken, false)));
                self.endings.push(EndedAttempt {
                    id,
                    at_us,
                    cost_micros,
                    ending,
                });
            }
        }
    }

    /// Counts the attempts with an unknown outcome.
    async fn count_unknown(
        &self,
        transaction: &Transaction<'_>,
        settled: &HashSet<i64>,
    ) -> Result<(), Fault> {
        let unknown = self.unknown.iter().filter(|(id, _)| settled.contains(id));
        let (ids, carriers): (Vec<i64>, Vec<&str>) = unknown.copied().unzip();
        if !ids.is_empty() {
            let statement = transaction.prepare_cached(COUNT_UNKNOWN).await?;
            transaction.execute(&statement, &[&ids, &carriers]).await?;
        }
        Ok(())
    }
}

/// The parameters of [`MOVE`].
#[derive(Default)]
struct Moves<'a> {
    keys: QueueRowKeys,
    owner: Vec<i64>,
    to_lane: Vec<i16>,
    to_us: Vec<i64>,
    carrier: Vec<Option<&'a str>>,
    reference: Vec<Option<&'a [u8]>>,
    parts: Vec<Option<i16>>,
    at_us: Vec<i64>,
    tries: Vec<i32>,
    pool_account: Vec<i64>,
    pool_expires_us: Vec<Option<i64>>,
    tail: Vec<i32>,
    cost_micros: Vec<Option<i64>>,
}

impl<'a> Moves<'a> {
    fn push(&mut self, owner: i64, to_lane: i16, to_us: i64, at_us: i64) {
        self.owner.push(owner);
        self.to_lane.push(to_lane);
        self.to_us.push(to_us);
        self.at_us.push(at_us);
    }

    fn push_taken(&mut self, taken: Option<&(&'a str, Vec<&'a str>)>, tail: i32) {
        self.tail.push(tail);
        let first = taken.and_then(|(_, references)| references.first());
        self.carrier.push(taken.map(|(carrier, _)| *carrier));
        self.reference.push(first.map(|first| first.as_bytes()));
        self.parts
            .push(taken.map(|(_, references)| count(references)));
    }

    /// Moves the rows, and adds their IDs to `settled`.
    async fn run(
        &self,
        transaction: &Transaction<'_>,
        node: NodeId,
        settled: &mut HashSet<i64>,
    ) -> Result<(), Fault> {
        let statement = transaction.prepare_cached(MOVE).await?;
        let values: super::Values<'_> = &[
            &node.as_i64(),
            &self.keys.id,
            &self.keys.lane,
            &self.keys.due_us,
            &self.keys.attempt,
            &self.owner,
            &self.to_lane,
            &self.to_us,
            &self.carrier,
            &self.reference,
            &self.parts,
            &self.at_us,
            &self.tries,
            &self.pool_account,
            &self.pool_expires_us,
            &self.tail,
            &self.cost_micros,
        ];
        for row in transaction.query(&statement, values).await? {
            settled.insert(column(&row, 0)?);
        }
        Ok(())
    }
}

/// Ends messages that have expired.
pub(super) struct Expiry<'a> {
    pub(super) node: NodeId,
    pub(super) limit: u32,
    pub(super) hold: bool,
    /// Whether a carrier took them and never reported on them; else they wait in pools.
    pub(super) taken: bool,
    pub(super) days: &'a DayStatements,
}

impl Retryable for Expiry<'_> {
    type Output = Vec<EndedColumns>;

    async fn run(&self, client: &mut Object) -> Result<Vec<EndedColumns>, Fault> {
        let transaction = client.transaction().await?;
        let limit = i64::from(self.limit);
        let expired = if self.taken {
            let statement = transaction.prepare_cached(REMOVE_EXPIRED).await?;
            transaction.query(&statement, &[&limit]).await?
        } else {
            let statement = transaction.prepare_cached(REMOVE_EXPIRED_POOLED).await?;
            transaction.query(&statement, &[&limit, &SET_ASIDE]).await?
        };
        let read = |row: &Row| {
            // A carrier that did not answer may have the message: then it counts as handed over.
            let is_taken = column(row, 2)?;
            Ok(PartReport {
                id: column(row, 0)?,
                parts: 1,
                outcome: dispatch::expired(is_taken),
                taken: if is_taken {
                    TakenParts::All
                } else {
                    TakenParts::Only(0)
                },
                at_us: column(row, 1)?,
                report: None,
                network: None,
                sent: SentColumns::read_optional(row, 3)?,
            })
        };
        let reports: Result<Vec<_>, Corrupt> = expired.iter().map(read).collect();
        let holder = self.hold.then_some(self.node);
        let ended = finish(&transaction, self.days, holder, &reports?).await?;
        commit(transaction).await?;
        Ok(ended)
    }
}
