//! Holds what was seen from outside, and what the books say, against the promises.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::books::{Books, Row};
use super::log::{Case, Fault, Pages, Report, Submit, Told};

/// How late a message may be once nothing is broken, apart from the time that the machine stood still.
pub(super) const LATEST_MS: u64 = 2000;
/// A cause may come so long before the first of two submits: what was with the network when it came.
const IN_FLIGHT_MS: u64 = 2000;

/// What a kind of fault permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leave {
    /// An order without a key that got 503 may be stored all the same: a database that goes away in the middle of a
    /// commit does not say what became of it.
    pub(super) unknown_commits: bool,
}

/// What came of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) messages: usize,
    pub(super) lost: usize,
    pub(super) duplicates: usize,
    pub(super) late: usize,
    /// The latest of the messages that must be in time.
    pub(super) latest: Option<Lateness>,
    pub(super) breaches: Vec<String>,
}

/// How long after its time a message was sent, and how much of that the machine stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lateness {
    pub(super) late_ms: u64,
    pub(super) stalled_ms: u64,
}

impl Lateness {
    fn is_explained(self) -> bool {
        self.late_ms <= LATEST_MS + self.stalled_ms
    }
}

/// Every promise.
pub(super) fn check(pages: &Pages, books: &Books, leave: Leave) -> Verdict {
    let mut checker = Checker {
        pages,
        books,
        leave,
        by_id: books.rows.iter().map(|row| (row.id, row)).collect(),
        by_number: group(books),
        verdict: Verdict {
            messages: books.rows.len(),
            breaches: pages.wrong.clone(),
            ..Verdict::default()
        },
    };
    checker.check_answers();
    checker.check_orders();
    checker.check_ends();
    checker.check_reports();
    checker.check_money();
    checker.check_times();
    checker.check_repetitions();
    checker.check_books();
    checker.verdict
}

struct Checker<'a> {
    pages: &'a Pages,
    books: &'a Books,
    leave: Leave,
    by_id: HashMap<u64, &'a Row>,
    by_number: BTreeMap<u64, Vec<&'a Row>>,
    verdict: Verdict,
}

fn group(books: &Books) -> BTreeMap<u64, Vec<&Row>> {
    let mut groups: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
    for row in &books.rows {
        if let Some(number) = row.number {
            groups.entry(number).or_default().push(row);
        }
    }
    groups
}

impl Checker<'_> {
    fn breach(&mut self, what: String) {
        self.verdict.breaches.push(what);
    }

    /// Every answered ID exists, once, and is the message that was asked for.
    fn check_answers(&mut self) {
        let mut given: HashMap<u64, u64> = HashMap::new();
        for case in self.pages.cases.values() {
            let number = case.order.number;
            let Some(ids) = case.ids() else { continue };
            if ids.len() != case.order.to.len() {
                self.breach(format!("order {number} got {ids:?}"));
            }
            for (id, (to, _)) in ids.iter().zip(&case.order.to) {
                if let Some(other) = given.insert(*id, number) {
                    self.breach(format!("ID {id} was given to {other} and {number}"));
                }
                match self.by_id.get(id) {
                    None => {
                        self.verdict.lost += 1;
                        self.breach(format!("{id} of order {number} was answered and is lost"));
                    }
                    Some(row) if row.number == Some(number) && row.to == *to => {}
                    Some(row) => self.breach(format!("{id} of order {number} is {row:?}")),
                }
            }
        }
    }

    /// What is stored was asked for: once for a key, never after a refusal.
    fn check_orders(&mut self) {
        for (number, rows) in &self.by_number.clone() {
            let Some(case) = self.pages.cases.get(number) else {
                self.breach(format!("nobody made the order {number} of {rows:?}"));
                continue;
            };
            if let Some(breach) = judge_stored(case, rows, self.leave) {
                self.breach(breach);
            }
        }
        for case in self.pages.cases.values() {
            let number = case.order.number;
            let answers = case.told.iter().filter(|told| matches!(told, Told::Ids(_)));
            let answers: Vec<_> = answers.collect();
            if answers.windows(2).any(|pair| pair[0] != pair[1]) {
                self.breach(format!("the key of order {number} gave {answers:?}"));
            }
            if case.order.is_invalid != case.told.contains(&Told::Refused(400)) && !is_silent(case)
            {
                self.breach(format!("order {number} was told {:?}", case.told));
            }
        }
    }

    /// Exactly one final state, the right one, and never another.
    fn check_ends(&mut self) {
        for case in self.pages.cases.values() {
            for (id, (_, end)) in case.ids().unwrap_or_default().iter().zip(&case.order.to) {
                let Some(row) = self.by_id.get(id) else {
                    continue;
                };
                // Whether one that nobody could take back is still there is no matter.
                let may_wait =
                    case.order.is_cancelled && !matches!(case.cancelled, Some(Told::Ids(_)));
                if row.end.is_none() && !may_wait {
                    self.verdict.lost += 1;
                    self.breach(format!("{id} of order {} never ended", case.order.number));
                } else if row.end.is_some_and(|found| found != *end) {
                    let found = row.end;
                    self.breach(format!("{id} ended as {found:?} and not as {end:?}"));
                }
            }
        }
        for (id, looks) in &self.pages.looks {
            let ends: BTreeSet<_> = looks.iter().flatten().collect();
            let changed = looks.windows(2).any(|pair| pair[0].is_some());
            let stored = self.by_id.get(id).and_then(|row| row.end);
            let differs = ends.iter().any(|end| Some(**end) != stored);
            if changed || differs {
                self.breach(format!("{id} was seen as {looks:?} and is {stored:?}"));
            }
        }
    }

    /// Each report was received at least once, or waits; all reports of a message are the same.
    fn check_reports(&mut self) {
        for case in self.pages.cases.values() {
            for id in case.ids().unwrap_or_default() {
                let reports = self.pages.reports.get(id).map_or(&[][..], Vec::as_slice);
                let is_received = reports.iter().any(|report| report.received);
                let waits = self.books.undelivered.contains(id);
                let ended = self.by_id.get(id).is_some_and(|row| row.end.is_some());
                if case.order.is_reported && ended && !is_received && !waits {
                    self.breach(format!("{id} ended and its report is nowhere"));
                }
                if !case.order.is_reported && !reports.is_empty() {
                    self.breach(format!("{id} was reported though nobody asked"));
                }
            }
        }
        for (id, reports) in &self.pages.reports {
            if let Some(breach) = judge_reports(*id, reports, self.by_id.get(id).copied()) {
                self.breach(breach);
            }
        }
    }

    /// The ledger gives the balance, and the messages give the ledger.
    fn check_money(&mut self) {
        for purse in &self.books.purses {
            let rows = self.books.rows.iter();
            let rows = rows.filter(|row| row.account == purse.account);
            let cost: i64 = rows.map(Row::cost).sum();
            if purse.balance != purse.ledger || purse.traffic != -cost {
                self.breach(format!("messages cost {cost}, but {purse:?}"));
            }
        }
    }

    /// Never early; not late once nothing is broken; not at all once it is taken back.
    fn check_times(&mut self) {
        let mut first: HashMap<u64, u64> = HashMap::new();
        for submit in &self.pages.submits {
            let earliest = first.entry(submit.number).or_insert(submit.at_ms);
            *earliest = (*earliest).min(submit.at_ms);
        }
        for case in self.pages.cases.values() {
            let number = case.order.number;
            let Some(due) = case.order.not_before_ms else {
                continue;
            };
            let sent = first.get(&number).copied();
            if sent.is_some_and(|sent| sent < due) {
                self.breach(format!("order {number} for {due} was sent at {sent:?}"));
            }
            if matches!(case.cancelled, Some(Told::Ids(_))) && sent.is_some() {
                self.breach(format!("order {number} was taken back and sent"));
            }
            let is_calm = self.pages.calm_ms.is_some_and(|calm| due >= calm);
            let is_accepted = case.ids().is_some() && !case.order.is_cancelled;
            if is_calm && is_accepted {
                self.check_lateness(number, due, sent);
            }
        }
    }

    /// How late a message was is measured. What the machine alone delayed is no breach.
    fn check_lateness(&mut self, number: u64, due: u64, sent: Option<u64>) {
        let lateness = sent.map(|sent| Lateness {
            late_ms: sent.saturating_sub(due),
            stalled_ms: self.pages.stalled_ms(due, sent),
        });
        self.verdict.latest = self.verdict.latest.max(lateness);
        if !lateness.is_some_and(Lateness::is_explained) {
            self.verdict.late += 1;
            self.breach(format!(
                "order {number} for {due} was sent at {sent:?}: {lateness:?}"
            ));
        }
    }

    /// A part is sent again only when something broke while it was under way, and only so often.
    fn check_repetitions(&mut self) {
        let mut parts: BTreeMap<(u64, u64, u8), Vec<u64>> = BTreeMap::new();
        for Submit {
            number,
            to,
            part,
            at_ms,
        } in &self.pages.submits
        {
            parts.entry((*number, *to, *part)).or_default().push(*at_ms);
        }
        let mut caused: HashMap<usize, usize> = HashMap::new();
        for (part, times) in &mut parts {
            times.sort_unstable();
            let mut used = HashSet::new();
            for pair in times.windows(2) {
                self.verdict.duplicates += 1;
                let cause = find_cause(&self.pages.faults, pair, &used);
                match cause {
                    Some(fault) => {
                        used.insert(fault);
                        *caused.entry(fault).or_default() += 1;
                    }
                    None => self.breach(format!("{part:?} was sent at {pair:?} without a cause")),
                }
            }
        }
        for (fault, count) in caused {
            let fault = self.pages.faults[fault];
            if count > fault.most {
                self.breach(format!("{count} parts were sent again after {fault:?}"));
            }
        }
    }

    /// A stale owner has settled nothing, and the database is whole.
    fn check_books(&mut self) {
        for id in &self.books.doubled {
            self.breach(format!("two tries of {id} were settled"));
        }
        for damage in &self.books.damage {
            self.breach(format!("the database is damaged: {damage}"));
        }
    }
}

/// Whether a caller was never told anything that counts.
fn is_silent(case: &Case) -> bool {
    let silent = |told: &Told| matches!(told, Told::Nothing | Told::Refused(503));
    case.told.iter().all(silent)
}

/// What is wrong with the stored messages of an order, if anything.
fn judge_stored(case: &Case, rows: &[&Row], leave: Leave) -> Option<String> {
    let (number, recipients) = (case.order.number, case.order.to.len());
    if rows.len() != recipients {
        return Some(format!(
            "order {number} became {} messages, not {recipients}",
            rows.len()
        ));
    }
    if case.ids().is_some() {
        let ids: BTreeSet<u64> = rows.iter().map(|row| row.id).collect();
        let told: BTreeSet<u64> = case.ids()?.iter().copied().collect();
        return (ids != told).then(|| format!("order {number} was told {told:?} and is {ids:?}"));
    }
    // Nobody knows what became of an order without an answer. One that was refused must not be there, unless its key
    // tells its caller so.
    let is_unknown = case.told.contains(&Told::Nothing) || case.told.is_empty();
    let is_refused = case
        .told
        .iter()
        .any(|told| matches!(told, Told::Refused(_)));
    let may_be = is_unknown || (leave.unknown_commits && !case.order.is_invalid);
    (is_refused && !may_be).then(|| format!("order {number} was refused and is stored"))
}

fn judge_reports(id: u64, reports: &[Report], row: Option<&Row>) -> Option<String> {
    let first = reports.first()?;
    let Some(row) = row else {
        return Some(format!("{id} was reported and does not exist: {first:?}"));
    };
    let is_right = |report: &&Report| {
        Some(report.number) == row.number
            && Some(report.end) == row.end
            && report.webhook_id == first.webhook_id
    };
    let wrong = reports.iter().find(|report| !is_right(report))?;
    Some(format!("{id} was reported as {wrong:?} and is {row:?}"))
}

/// A fault between two submits, or while the first was under way, that has not served for this part yet.
fn find_cause(faults: &[Fault], pair: &[u64], used: &HashSet<usize>) -> Option<usize> {
    let fits = |fault: &Fault| fault.from_ms <= pair[1] && fault.until_ms + IN_FLIGHT_MS >= pair[0];
    let mut unused = (0..faults.len()).filter(|at| !used.contains(at));
    unused.find(|at| fits(&faults[*at]))
}
