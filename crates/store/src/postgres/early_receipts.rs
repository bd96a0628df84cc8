//! Early receipts: receipts that arrived before the carrier's answer to the submit.
//!
//! The transaction that stores the reference of a part and the one that stores its early receipt may run at the same
//! time, and neither sees uncommitted rows of the other. So each commits first and then looks for the other; the one
//! that commits last finds a match. It removes the receipt and settles it like a new one, in one transaction, so it
//! counts once even if both sides find it. If a process stops in between, the pair stays; so all stored early receipts
//! are compared with the parts from time to time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use deadpool_postgres::Object;
use domain::delivery::receipt_match::{NumberTail, other_forms};
use domain::delivery::{CarrierRef, Receipt, SendResult, Settlement};
use domain::ids::NodeId;
use domain::ports::StoreError;
use tokio_postgres::Row;

use super::day_statements::DayStatements;
use super::fault::Fault;
use super::receipts::{self, Columns, Forms, Holder};
use super::retry::{self, Retryable};
use super::{PostgresStore, column};
use crate::rows::dispatch::NO_TAIL;
use crate::rows::ended::{EndedColumns, MatchedColumns, SettledColumns};
use crate::rows::{self, Corrupt};

/// Usually there are none at all.
const HAS_EARLY: &str = "SELECT EXISTS (SELECT 1 FROM early_receipt)";
/// Early receipts of parts: in the same form, unless the recipient differs, or in another form for the same recipient.
/// At most two match; the limit makes the planner use the index.
const FIND_EARLY: &str = "
    SELECT g.place, e.carrier, e.reference, e.tail
    FROM UNNEST($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::int[]) AS g (place, carrier, reference, form, tail)
    CROSS JOIN LATERAL (
        SELECT * FROM early_receipt
        WHERE carrier = g.carrier AND reference = g.reference AND (tail = g.tail OR (g.form = 0 AND tail = -1)) LIMIT 2
    ) AS e
    ORDER BY g.place, g.form, e.taken_us";
const REMOVE: &str = "
    DELETE FROM early_receipt AS e USING UNNEST($1::text[], $2::bytea[], $3::int[]) AS g (carrier, reference, tail)
    WHERE e.carrier = ANY(ARRAY[g.carrier]) AND e.reference = g.reference AND e.tail = g.tail
    RETURNING e.carrier, e.reference, e.tail, e.status, e.error, e.taken_us, e.report, e.network";
const LIST: &str = "
    SELECT carrier, reference, tail, status, error, taken_us, report, network FROM early_receipt
    WHERE (carrier, reference, tail) > ($1, $2, $3) ORDER BY carrier, reference, tail LIMIT $4";

/// The key of a stored early receipt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
struct Key {
    carrier: String,
    reference: Vec<u8>,
    tail: i32,
}

impl Key {
    fn from_receipt(receipt: &Receipt) -> Self {
        Self {
            carrier: receipt.of.carrier.clone(),
            reference: receipt.of.reference.clone().into_bytes(),
            tail: receipt.to.map_or(NO_TAIL, NumberTail::as_i32),
        }
    }

    fn read(row: &Row, at: usize) -> Result<Self, Corrupt> {
        Ok(Self {
            carrier: column(row, at)?,
            reference: column(row, at + 1)?,
            tail: column(row, at + 2)?,
        })
    }
}

/// Where the comparison of all stored early receipts continues.
#[derive(Default)]
pub(super) struct MatchCursor(Mutex<Key>);

/// The parameters of [`FIND_EARLY`]: parts with new references.
#[derive(Default)]
struct NewPartColumns<'a> {
    index: Vec<i32>,
    carrier: Vec<&'a str>,
    reference: Vec<Vec<u8>>,
    form: Vec<i16>,
    tail: Vec<i32>,
}

impl<'a> NewPartColumns<'a> {
    /// The parts of stored settlements.
    fn from_settled(batch: &'a [Settlement], settled: &[SettledColumns]) -> Self {
        let mut new_parts = Self::default();
        let stored = batch.iter().zip(settled);
        let stored = stored.filter(|(_, settled)| !matches!(settled, SettledColumns::Stale));
        let mut index = 0;
        for (settlement, _) in stored {
            let (SendResult::Taken {
                carrier,
                references,
            }
            | SendResult::PartlyTaken {
                carrier,
                references,
                ..
            }) = &settlement.sent
            else {
                continue;
            };
            let tail = NumberTail::from_number(&settlement.to).as_i32();
            for reference in references {
                let own = std::iter::once(reference.clone());
                for (form, reference) in (0..).zip(own.chain(other_forms(reference))) {
                    new_parts.index.push(index);
                    new_parts.carrier.push(carrier);
                    new_parts.reference.push(reference.into_bytes());
                    new_parts.form.push(form);
                    new_parts.tail.push(tail);
                }
                index += 1;
            }
        }
        new_parts
    }
}

impl PostgresStore {
    /// Settles receipts that arrived before these answers. Called after the answers are committed.
    pub(super) async fn settle_early(
        &self,
        node: NodeId,
        hold: bool,
        batch: &[Settlement],
        settled: &mut [SettledColumns],
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "find early receipts";
        let has_early = |row: &Row| column(row, 0);
        if !self.get(OPERATION, HAS_EARLY, &[], has_early).await? {
            return Ok(());
        }
        let new_parts = NewPartColumns::from_settled(batch, settled);
        if new_parts.index.is_empty() {
            return Ok(());
        }
        let values: super::Values<'_> = &[
            &new_parts.index,
            &new_parts.carrier,
            &new_parts.reference,
            &new_parts.form,
            &new_parts.tail,
        ];
        let read = |row: &Row| Ok((column::<i32>(row, 0)?, Key::read(row, 1)?));
        let found = self.list(OPERATION, FIND_EARLY, values, read).await?;
        if found.is_empty() {
            return Ok(());
        }
        // One receipt for each part: others may belong to parts whose references are stored later.
        let (mut parts, mut keys) = (HashSet::new(), HashSet::new());
        for (index, key) in found {
            if !parts.contains(&index) && keys.insert(key) {
                parts.insert(index);
            }
        }
        let stored = batch.iter().zip(&*settled).enumerate();
        let stored = stored.filter(|(_, (_, settled))| !matches!(settled, SettledColumns::Stale));
        let indexes: HashMap<i64, usize> = stored
            .map(|(index, (settlement, _))| (settlement.id.as_i64(), index))
            .collect();
        let known: HashSet<i64> = indexes.keys().copied().collect();
        let holder = Holder::new(node, hold).only(&known);
        for (_, matched) in self
            .settle_stored(holder, keys.into_iter().collect())
            .await?
        {
            if let MatchedColumns::Ended(columns) = matched
                && let Some(&index) = indexes.get(&columns.id)
            {
                settled[index] = SettledColumns::Ended(columns);
            }
        }
        Ok(())
    }

    /// Searches again for the parts of unmatched receipts. Called after these are committed.
    pub(super) async fn match_again(
        &self,
        node: NodeId,
        hold: bool,
        batch: &[Receipt],
        matched: &mut [MatchedColumns],
    ) -> Result<(), StoreError> {
        let unmatched = batch.iter().enumerate().zip(&*matched);
        let unmatched = unmatched.filter(|(_, matched)| matches!(matched, MatchedColumns::Kept));
        let unmatched: Vec<(usize, &Receipt)> = unmatched.map(|(receipt, _)| receipt).collect();
        if unmatched.is_empty() {
            return Ok(());
        }
        let find = FindParts(Columns::from_batch(unmatched.iter().copied(), Forms::All));
        let found = retry::run(&self.pool, "match receipts again", &find).await?;
        if found.is_empty() {
            return Ok(());
        }
        let keys: HashSet<Key> = found
            .keys()
            .map(|&index| Key::from_receipt(&batch[index]))
            .collect();
        let settled = self.settle_stored(Holder::new(node, hold), keys.iter().cloned().collect());
        let mut settled: HashMap<Key, MatchedColumns> = settled.await?.into_iter().collect();
        for (index, receipt) in unmatched {
            let key = Key::from_receipt(receipt);
            // Missing receipts were settled by another node, or by the same receipt earlier in the batch.
            if keys.contains(&key) {
                matched[index] = settled.remove(&key).unwrap_or(MatchedColumns::Repeated);
            }
        }
        Ok(())
    }

    /// Matches stored receipts with the parts that wait for one, a few at a time.
    pub(super) async fn match_stored(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<EndedColumns>, StoreError> {
        let after = self.match_cursor.lock().clone();
        let limit = i64::from(limit);
        let values: super::Values<'_> = &[&after.carrier, &after.reference, &after.tail, &limit];
        let receipts = self
            .list("list stored receipts", LIST, values, read_receipt)
            .await?;
        let is_full = receipts.len() as u64 >= limit.cast_unsigned();
        let last = receipts.last().filter(|_| is_full).map(Key::from_receipt);
        *self.match_cursor.lock() = last.unwrap_or_default();
        if receipts.is_empty() {
            return Ok(Vec::new());
        }
        let find = FindParts(Columns::from_batch(receipts.iter().enumerate(), Forms::All));
        let found = retry::run(&self.pool, "match stored receipts", &find).await?;
        let waiting = found.into_iter().filter(|(_, waits)| *waits);
        let keys: Vec<Key> = waiting
            .map(|(index, _)| Key::from_receipt(&receipts[index]))
            .collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let settled = self.settle_stored(Holder::new(node, hold), keys).await?;
        let ended = settled
            .into_iter()
            .filter_map(|(_, matched)| match matched {
                MatchedColumns::Ended(columns) => Some(columns),
                MatchedColumns::Noted | MatchedColumns::Repeated | MatchedColumns::Kept => None,
            });
        Ok(ended.collect())
    }

    async fn settle_stored(
        &self,
        holder: Holder<'_>,
        mut keys: Vec<Key>,
    ) -> Result<Vec<(Key, MatchedColumns)>, StoreError> {
        keys.sort_unstable();
        retry::run(
            &self.pool,
            "settle early receipts",
            &SettleEarly {
                keys,
                holder,
                days: &self.day_statements,
            },
        )
        .await
    }
}

impl MatchCursor {
    fn lock(&self) -> std::sync::MutexGuard<'_, Key> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds the parts of receipts.
struct FindParts<'a>(Columns<'a>);

impl Retryable for FindParts<'_> {
    type Output = HashMap<usize, bool>;

    async fn run(&self, client: &mut Object) -> Result<HashMap<usize, bool>, Fault> {
        self.0.find(client).await
    }
}

/// Settles stored early receipts, because their parts are known now.
struct SettleEarly<'a> {
    keys: Vec<Key>,
    holder: Holder<'a>,
    days: &'a DayStatements,
}

impl Retryable for SettleEarly<'_> {
    type Output = Vec<(Key, MatchedColumns)>;

    async fn run(&self, client: &mut Object) -> Result<Self::Output, Fault> {
        let transaction = client.transaction().await?;
        let carriers: Vec<&str> = self.keys.iter().map(|key| key.carrier.as_str()).collect();
        let references: Vec<&[u8]> = self.keys.iter().map(|key| &key.reference[..]).collect();
        let tails: Vec<i32> = self.keys.iter().map(|key| key.tail).collect();
        let statement = transaction.prepare_cached(REMOVE).await?;
        let values: super::Values<'_> = &[&carriers, &references, &tails];
        let taken = transaction.query(&statement, values).await?;
        let receipts: Result<Vec<Receipt>, Corrupt> = taken.iter().map(read_receipt).collect();
        let receipts = receipts?;
        let matched = receipts::settle(&transaction, self.days, self.holder, &receipts).await?;
        transaction.commit().await?;
        let keys = receipts.iter().map(Key::from_receipt);
        Ok(keys.zip(matched).collect())
    }
}

fn read_receipt(row: &Row) -> Result<Receipt, Corrupt> {
    let key = Key::read(row, 0)?;
    Ok(Receipt {
        of: CarrierRef {
            carrier: key.carrier,
            reference: rows::utf8(key.reference)?,
        },
        to: NumberTail::from_i32(key.tail),
        outcome: rows::outcome(column(row, 3)?, column(row, 4)?)?,
        at: rows::timestamp(column(row, 5)?)?,
        report: column(row, 6)?,
        network: rows::billing::network(column(row, 7)?)?,
    })
}
