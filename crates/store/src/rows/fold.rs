//! Folding the ledger: the charges and refunds of a day become one entry for each kind. Messages from handsets
//! and verifications are charged by kinds of their own.
//!
//! Credits and entries with a note stay as they are, because people made them and look for them. So charges and refunds
//! are folded between two such entries, and every remaining entry keeps its balance.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::billing::EntryKind;

use super::SqlRow;

/// The number of accounts that one step checks.
pub(crate) const ACCOUNTS: u32 = 100;
const CHARGE: i16 = EntryKind::Charge.number();
const REFUND: i16 = EntryKind::Refund.number();
const INBOUND: i16 = EntryKind::Inbound.number();
const VERIFICATION: i16 = EntryKind::Verification.number();
const DAY_US: i64 = 86_400_000_000;

/// An entry as far as folding needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoldEntry {
    pub(crate) id: i64,
    pub(crate) at_us: i64,
    pub(crate) kind: i16,
    pub(crate) amount_micros: i64,
    /// The balance after it.
    pub(crate) balance_micros: i64,
    pub(crate) messages: i64,
    pub(crate) has_note: bool,
    pub(crate) spent_day: i32,
    pub(crate) spent_micros: i64,
}

impl FoldEntry {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            at_us: row.column(1)?,
            kind: row.column(2)?,
            amount_micros: row.column(3)?,
            balance_micros: row.column(4)?,
            messages: row.column(5)?,
            has_note: row.column(6)?,
            spent_day: row.column(7)?,
            spent_micros: row.column(8)?,
        })
    }

    /// The day of an entry that may be folded.
    fn foldable_day(&self) -> Option<i64> {
        let is_sum = matches!(self.kind, CHARGE | REFUND | INBOUND | VERIFICATION);
        let is_foldable = is_sum && !self.has_note;
        is_foldable.then(|| self.at_us.div_euclid(DAY_US))
    }
}

/// The start of the day of a time.
pub(crate) fn day_start_us(at_us: i64) -> i64 {
    at_us - at_us.rem_euclid(DAY_US)
}

/// How far the ledger of one account is folded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FoldCursor {
    /// Reading continues after this entry: more of the last day may follow, and is folded into the same entries.
    pub(crate) after: i64,
    /// Everything up to this entry is folded.
    pub(crate) done: i64,
}

/// The account that is folded next, and the progress of each. After a restart every ledger is read once from its
/// beginning; folded entries do not change again.
#[derive(Debug, Default)]
pub(crate) struct Folding(Mutex<FoldState>);

#[derive(Debug, Default)]
struct FoldState {
    next: i64,
    cursors: HashMap<i64, FoldCursor>,
}

impl Folding {
    fn lock(&self) -> MutexGuard<'_, FoldState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account to continue with, or the first after it.
    pub(crate) fn next(&self) -> i64 {
        self.lock().next
    }

    pub(crate) fn cursor(&self, account: i64) -> FoldCursor {
        let cursor = self.lock().cursors.get(&account).copied();
        cursor.unwrap_or_default()
    }

    /// Stores the progress of an account and continues with it. If the step folded nothing, the next account follows.
    pub(crate) fn set_cursor(&self, account: i64, cursor: FoldCursor) {
        let mut state = self.lock();
        let before = state.cursors.insert(account, cursor).unwrap_or_default();
        state.next = account + i64::from(before.done >= cursor.done);
    }

    /// Skips these accounts, which have nothing to fold. Returns whether more accounts may follow.
    pub(crate) fn skip(&self, accounts: &[i64]) -> bool {
        let is_last = accounts.len() < ACCOUNTS as usize;
        let next = accounts.last().filter(|_| !is_last).map(|last| last + 1);
        self.lock().next = next.unwrap_or_default();
        !is_last
    }
}

/// The changes that fold some entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    /// The entries that replace those of a day, under some of their IDs.
    pub(crate) changed: Vec<FoldEntry>,
    /// The IDs of entries that were added to the sums, to be deleted.
    pub(crate) removed: Vec<i64>,
    pub(crate) cursor: FoldCursor,
}

/// Folds consecutive entries of one account, in the order of their IDs, up to the first one at `before_us` or later.
pub(crate) fn fold(entries: &[FoldEntry], before_us: i64, cursor: FoldCursor) -> Folded {
    let young = entries.iter().position(|entry| entry.at_us >= before_us);
    let entries = &entries[..young.unwrap_or(entries.len())];
    let mut folded = Folded {
        cursor,
        ..Folded::default()
    };
    let mut previous = cursor.after;
    for run in
        entries.chunk_by(|a, b| a.foldable_day().is_some() && a.foldable_day() == b.foldable_day())
    {
        let is_foldable = run[0].foldable_day().is_some();
        if is_foldable {
            fold_run(run, &mut folded);
        }
        let last = run[run.len() - 1].id;
        folded.cursor.after = if is_foldable { previous } else { last };
        folded.cursor.done = last;
        previous = last;
    }
    folded
}

/// Folds the charges and refunds of a day between two entries that stay.
fn fold_run(run: &[FoldEntry], folded: &mut Folded) {
    let mut balance_micros = run[0].balance_micros - run[0].amount_micros;
    let mut sums: Vec<FoldEntry> = [CHARGE, REFUND, INBOUND, VERIFICATION]
        .iter()
        .filter_map(|kind| sum(run, *kind))
        .collect();
    if sums.len() == run.len() {
        return;
    }
    let (removed, kept) = run.split_at(run.len() - sums.len());
    for (sum, kept) in sums.iter_mut().zip(kept) {
        balance_micros += sum.amount_micros;
        sum.id = kept.id;
        sum.balance_micros = balance_micros;
    }
    folded.removed.extend(removed.iter().map(|entry| entry.id));
    folded.changed.extend(sums);
}

/// All entries of a kind as one, with the spending of the last.
fn sum(run: &[FoldEntry], kind: i16) -> Option<FoldEntry> {
    let entries = || run.iter().filter(|entry| entry.kind == kind);
    let last = entries().next_back()?;
    Some(FoldEntry {
        at_us: entries().map(|entry| entry.at_us).max()?,
        amount_micros: entries().map(|entry| entry.amount_micros).sum(),
        messages: entries().map(|entry| entry.messages).sum(),
        ..*last
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A ledger with these days, kinds and amounts.
    fn ledger(steps: &[(i64, i16, i64)]) -> Vec<FoldEntry> {
        let mut balance_micros = 0;
        let entry = |(id, &(day, kind, amount)): (i64, &(i64, i16, i64))| {
            let is_charge = matches!(kind, CHARGE | INBOUND | VERIFICATION);
            let amount_micros = if is_charge { -amount } else { amount };
            balance_micros += amount_micros;
            FoldEntry {
                id,
                at_us: day * DAY_US + id,
                kind,
                amount_micros,
                balance_micros,
                messages: i64::from(kind != 1),
                has_note: kind == 1 && amount % 2 == 0,
                spent_day: 7,
                spent_micros: id,
            }
        };
        (1..).zip(steps).map(entry).collect()
    }

    fn apply(entries: &[FoldEntry], folded: &Folded) -> Vec<FoldEntry> {
        let stays = entries
            .iter()
            .filter(|entry| !folded.removed.contains(&entry.id));
        let changed = |id| folded.changed.iter().find(|changed| changed.id == id);
        stays
            .map(|entry| *changed(entry.id).unwrap_or(entry))
            .collect()
    }

    fn short(entries: &[FoldEntry]) -> Vec<(i64, i16, i64, i64)> {
        let short = |entry: &FoldEntry| (entry.id, entry.kind, entry.amount_micros, entry.messages);
        entries.iter().map(short).collect()
    }

    #[test]
    fn folding_stops_at_the_first_entry_that_is_too_young() {
        let entries = ledger(&[(1, 2, 5), (1, 2, 5), (4, 2, 5), (1, 2, 5)]);
        let folded = fold(&entries, 4 * DAY_US, FoldCursor::default());
        assert_eq!(folded.removed, [1]);
        assert_eq!(folded.cursor, FoldCursor { after: 0, done: 2 });
        let folded = fold(&entries, DAY_US, FoldCursor::default());
        assert_eq!(folded, Folded::default());
    }

    #[test]
    fn a_day_becomes_one_entry_for_each_kind_and_credits_stay() {
        let entries = ledger(&[
            (1, 1, 100),
            (1, 2, 5),
            (1, 3, 2),
            (1, 2, 5),
            (1, 1, 50),
            (1, 2, 1),
            (2, 2, 3),
            (2, 2, 4),
            (3, 3, 1),
        ]);
        let folded = fold(&entries, i64::MAX, FoldCursor::default());
        let left = apply(&entries, &folded);
        let expected = [
            (1, 1, 100, 0),
            (3, 2, -10, 2),
            (4, 3, 2, 1),
            (5, 1, 50, 0),
            (6, 2, -1, 1),
            (8, 2, -7, 2),
            (9, 3, 1, 1),
        ];
        assert_eq!(short(&left), expected);
        assert_eq!(folded.cursor, FoldCursor { after: 8, done: 9 });
        assert_eq!(left[1].balance_micros, 90);
        assert_eq!(left[2].balance_micros, entries[3].balance_micros);
    }

    /// Without IDs: a charge and a refund of one day may be in either order.
    fn unordered(entries: &[FoldEntry]) -> Vec<(i64, i16, i64, i64)> {
        let short = |entry: &FoldEntry| {
            let day = entry.at_us.div_euclid(DAY_US);
            (day, entry.kind, entry.amount_micros, entry.messages)
        };
        let mut short: Vec<_> = entries.iter().map(short).collect();
        short.sort_unstable();
        short
    }

    fn balances_follow(entries: &[FoldEntry]) -> bool {
        let mut balance = 0;
        entries.iter().all(|entry| {
            balance += entry.amount_micros;
            balance == entry.balance_micros
        })
    }

    proptest! {
        /// In steps of any size: sums and credits stay the same, and folding again changes nothing.
        #[test]
        fn folding_preserves_all_sums(
            steps in vec((0_i64..2, 1_i16..=5, 1_i64..100), 1..60),
            page in 5_usize..20,
        ) {
            let mut day = 0;
            let steps: Vec<_> = steps.into_iter().map(|(next, kind, amount)| {
                day += next;
                (day, kind, amount)
            }).collect();
            let before = ledger(&steps);
            let mut entries = before.clone();
            let mut cursor = FoldCursor::default();
            while entries.iter().any(|entry| entry.id > cursor.done) {
                let rest = entries.iter().filter(|entry| entry.id > cursor.after);
                let read: Vec<_> = rest.take(page).copied().collect();
                let folded = fold(&read, i64::MAX, cursor);
                prop_assert!(folded.cursor.done > cursor.done, "each step advances");
                entries = apply(&entries, &folded);
                cursor = folded.cursor;
            }
            prop_assert!(balances_follow(&entries));
            prop_assert_eq!(entries.last().map(|last| last.balance_micros), before.last().map(|last| last.balance_micros));
            for kind in 1..=5 {
                let sum = |entries: &[FoldEntry]| -> (i64, i64) {
                    let of_kind = entries.iter().filter(|entry| entry.kind == kind);
                    of_kind.fold((0, 0), |sum, entry| (sum.0 + entry.amount_micros, sum.1 + entry.messages))
                };
                prop_assert_eq!(sum(&entries), sum(&before));
            }
            let credits = |entries: &[FoldEntry]| -> Vec<FoldEntry> {
                entries.iter().filter(|entry| entry.kind == 1).copied().collect()
            };
            prop_assert_eq!(credits(&entries), credits(&before));
            let whole = fold(&before, i64::MAX, FoldCursor::default());
            prop_assert_eq!(unordered(&apply(&before, &whole)), unordered(&entries), "in steps and at once");
            let again = fold(&entries, i64::MAX, FoldCursor::default());
            prop_assert_eq!((again.changed, again.removed), (vec![], vec![]));
        }
    }
}
