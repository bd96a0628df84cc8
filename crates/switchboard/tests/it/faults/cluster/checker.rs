//! Compares what was observed from outside, and the contents of the database, with the guarantees.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::contents::{DatabaseContents, Row};
use super::handset_checker;
use super::log::{Answer, Fault, Observations, Report, RequestRecord, Submit};
use super::requests::REFUSED;
use super::smpp_checker;

/// How late a message may be once all faults are over, not counting stalls of the machine.
pub(super) const LATEST_MS: u64 = 2000;
/// A fault explains a duplicate even if it ended this long before the first submit.
const IN_FLIGHT_MS: u64 = 2000;

/// What a scenario permits besides the guarantees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tolerance {
    /// A request without a key that got 503 may be stored: when the database goes away in the middle of a commit,
    /// nobody knows the outcome.
    pub(super) unknown_commits: bool,
}

/// The result of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) messages: usize,
    pub(super) lost: usize,
    pub(super) duplicates: usize,
    pub(super) late: usize,
    /// How often a receipt came again to an SMPP client.
    pub(super) repeated_receipts: usize,
    /// The largest lateness of the messages that must be on time.
    pub(super) latest: Option<Lateness>,
    pub(super) violations: Vec<String>,
}

/// How long after its time a message was sent, and how much of that was a stall of the machine.
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

/// Checks every guarantee.
pub(super) fn check(
    observed: &Observations,
    contents: &DatabaseContents,
    tolerance: Tolerance,
) -> Verdict {
    let mut checker = Checker {
        observed,
        contents,
        tolerance,
        by_id: contents.rows.iter().map(|row| (row.id, row)).collect(),
        by_number: group(contents),
        verdict: Verdict {
            messages: contents.rows.len(),
            violations: observed.unexpected.clone(),
            ..Verdict::default()
        },
    };
    checker.check_answers();
    checker.check_requests();
    checker.check_final_states();
    checker.check_reports();
    checker.check_money();
    checker.check_times();
    checker.check_repetitions();
    checker.check_contents();
    handset_checker::check(&observed.texts, contents, &mut checker.verdict);
    smpp_checker::check(observed, tolerance, &mut checker.verdict);
    checker.verdict
}

struct Checker<'a> {
    observed: &'a Observations,
    contents: &'a DatabaseContents,
    tolerance: Tolerance,
    by_id: HashMap<u64, &'a Row>,
    by_number: BTreeMap<u64, Vec<&'a Row>>,
    verdict: Verdict,
}

fn group(contents: &DatabaseContents) -> BTreeMap<u64, Vec<&Row>> {
    let mut groups: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
    for row in &contents.rows {
        if let Some(number) = row.number {
            groups.entry(number).or_default().push(row);
        }
    }
    groups
}

impl Checker<'_> {
    fn violation(&mut self, what: String) {
        self.verdict.violations.push(what);
    }

    /// Every answered ID exists, is unique, and belongs to the requested message.
    fn check_answers(&mut self) {
        let mut given: HashMap<u64, u64> = HashMap::new();
        for record in self.observed.requests.values() {
            let number = record.request.number;
            let Some(ids) = record.ids() else { continue };
            if ids.len() != record.request.to.len() {
                self.violation(format!("request {number} got {ids:?}"));
            }
            for (id, (to, _)) in ids.iter().zip(&record.request.to) {
                if let Some(other) = given.insert(*id, number) {
                    self.violation(format!("ID {id} was given to {other} and {number}"));
                }
                match self.by_id.get(id) {
                    None => {
                        self.verdict.lost += 1;
                        self.violation(format!(
                            "{id} of request {number} was answered and is lost"
                        ));
                    }
                    Some(row) if row.number == Some(number) && row.to == *to => {}
                    Some(row) => self.violation(format!("{id} of request {number} is {row:?}")),
                }
            }
        }
    }

    /// Every stored message was requested; a key is stored once, a refused request never.
    fn check_requests(&mut self) {
        for (number, rows) in &self.by_number.clone() {
            let Some(record) = self.observed.requests.get(number) else {
                self.violation(format!("nobody sent request {number} of {rows:?}"));
                continue;
            };
            if let Some(violation) = check_stored(record, rows, self.tolerance) {
                self.violation(violation);
            }
        }
        for record in self.observed.requests.values() {
            let number = record.request.number;
            let answers = record
                .answers
                .iter()
                .filter(|answer| matches!(answer, Answer::Ids(_)));
            let answers: Vec<_> = answers.collect();
            if answers.windows(2).any(|pair| pair[0] != pair[1]) {
                self.violation(format!("the key of request {number} gave {answers:?}"));
            }
            if record.request.is_invalid != record.answers.contains(&Answer::Refused(400))
                && !has_no_definite_answer(record)
            {
                self.violation(format!(
                    "request {number} was answered {:?}",
                    record.answers
                ));
            }
        }
    }

    /// Each message has exactly one final state, the expected one, and it never changes.
    fn check_final_states(&mut self) {
        for record in self.observed.requests.values() {
            for (id, (to, final_state)) in record
                .ids()
                .unwrap_or_default()
                .iter()
                .zip(&record.request.to)
            {
                let Some(row) = self.by_id.get(id) else {
                    continue;
                };
                // A message may still wait if the request to cancel it failed.
                let may_wait = record.request.is_cancelled
                    && !matches!(record.cancelled, Some(Answer::Ids(_)));
                let may_wait = may_wait || self.may_be_taken(record.request.number, *to);
                if row.final_state.is_none() && !may_wait {
                    self.verdict.lost += 1;
                    self.violation(format!(
                        "{id} of request {} never ended",
                        record.request.number
                    ));
                } else if row.final_state.is_some_and(|found| found != *final_state) {
                    let found = row.final_state;
                    self.violation(format!(
                        "{id} ended as {found:?} and not as {final_state:?}"
                    ));
                }
            }
        }
        for (id, status_checks) in &self.observed.status_checks {
            let final_states: BTreeSet<_> = status_checks.iter().flatten().collect();
            let changed = status_checks.windows(2).any(|pair| pair[0].is_some());
            let stored = self.by_id.get(id).and_then(|row| row.final_state);
            let differs = final_states
                .iter()
                .any(|final_state| Some(**final_state) != stored);
            if changed || differs {
                self.violation(format!(
                    "{id} was seen as {status_checks:?} and is {stored:?}"
                ));
            }
        }
    }

    /// Whether the carrier may have a message to the refused number. It may if the answer to the first attempt was lost: the
    /// refusal of a repetition says nothing about that attempt, so the message is repeated, and waits.
    fn may_be_taken(&self, number: u64, to: u64) -> bool {
        let mut parts = HashSet::new();
        let submits = self.observed.submits.iter();
        let mut of_message = submits.filter(|submit| (submit.number, submit.to) == (number, to));
        to == REFUSED.0 && !of_message.all(|submit| parts.insert(submit.part))
    }

    /// Each report was received at least once or still waits; all reports of a message are equal.
    fn check_reports(&mut self) {
        for record in self.observed.requests.values() {
            for id in record.ids().unwrap_or_default() {
                let reports = self.observed.reports.get(id).map_or(&[][..], Vec::as_slice);
                let is_received = reports.iter().any(|report| report.received);
                let waits = self.contents.undelivered_reports.contains(id);
                let ended = self
                    .by_id
                    .get(id)
                    .is_some_and(|row| row.final_state.is_some());
                if record.request.is_reported && ended && !is_received && !waits {
                    self.violation(format!("{id} ended and its report is nowhere"));
                }
                if !record.request.is_reported && !reports.is_empty() {
                    self.violation(format!("{id} was reported, but no report was requested"));
                }
            }
        }
        for (id, reports) in &self.observed.reports {
            if let Some(violation) =
                check_report_contents(*id, reports, self.by_id.get(id).copied())
            {
                self.violation(violation);
            }
        }
    }

    /// The ledger adds up to the balance, and the messages add up to the ledger.
    fn check_money(&mut self) {
        for funds in &self.contents.funds {
            let rows = self.contents.rows.iter();
            let rows = rows.filter(|row| row.account == funds.account);
            let cost: i64 = rows.map(Row::cost).sum();
            if funds.balance != funds.ledger || funds.traffic != -cost {
                self.violation(format!("messages cost {cost}, but {funds:?}"));
            }
        }
    }

    /// No message is early, none is late once all faults are over, and no cancelled message is sent.
    fn check_times(&mut self) {
        let mut first: HashMap<u64, u64> = HashMap::new();
        for submit in &self.observed.submits {
            let earliest = first.entry(submit.number).or_insert(submit.at_ms);
            *earliest = (*earliest).min(submit.at_ms);
        }
        for record in self.observed.requests.values() {
            let number = record.request.number;
            let Some(due) = record.request.not_before_ms else {
                continue;
            };
            let sent = first.get(&number).copied();
            if sent.is_some_and(|sent| sent < due) {
                self.violation(format!("request {number} for {due} was sent at {sent:?}"));
            }
            if matches!(record.cancelled, Some(Answer::Ids(_))) && sent.is_some() {
                self.violation(format!("request {number} was cancelled and sent"));
            }
            let is_after_faults = self.observed.faults_over_ms.is_some_and(|over| due >= over);
            let is_accepted = record.ids().is_some() && !record.request.is_cancelled;
            if is_after_faults && is_accepted {
                self.check_lateness(number, due, sent);
            }
        }
    }

    /// Measures how late a message was. A delay that a stall of the machine explains is no violation.
    fn check_lateness(&mut self, number: u64, due: u64, sent: Option<u64>) {
        let lateness = sent.map(|sent| Lateness {
            late_ms: sent.saturating_sub(due),
            stalled_ms: self.observed.stalled_ms(due, sent),
        });
        self.verdict.latest = self.verdict.latest.max(lateness);
        if !lateness.is_some_and(Lateness::is_explained) {
            self.verdict.late += 1;
            self.violation(format!(
                "request {number} for {due} was sent at {sent:?}: {lateness:?}"
            ));
        }
    }

    /// A part is sent again only if a fault hit it on its way, and no fault causes more duplicates than it may.
    fn check_repetitions(&mut self) {
        let mut parts: BTreeMap<(u64, u64, u8), Vec<u64>> = BTreeMap::new();
        for Submit {
            number,
            to,
            part,
            at_ms,
        } in &self.observed.submits
        {
            parts.entry((*number, *to, *part)).or_default().push(*at_ms);
        }
        let mut caused: HashMap<usize, usize> = HashMap::new();
        for (part, times) in &mut parts {
            times.sort_unstable();
            let mut used = HashSet::new();
            for (index, pair) in times.windows(2).enumerate() {
                self.verdict.duplicates += 1;
                // Each refused repetition leads to another one.
                if part.1 == REFUSED.0 && index > 0 {
                    continue;
                }
                // The first one that came may repeat one that a fault swallowed.
                let from = match self.observed.requests.get(&part.0) {
                    Some(record) if part.1 == REFUSED.0 => record.began_ms,
                    _ => pair[0],
                };
                let cause = find_cause(&self.observed.faults, [from, pair[1]], &used);
                match cause {
                    Some(fault) => {
                        used.insert(fault);
                        *caused.entry(fault).or_default() += 1;
                    }
                    None => {
                        self.violation(format!(
                            "{part:?} was sent at {pair:?} without a cause: {times:?} in all"
                        ));
                    }
                }
            }
        }
        for (fault, count) in caused {
            let fault = self.observed.faults[fault];
            if count > fault.max_duplicates {
                self.violation(format!("{count} parts were sent again after {fault:?}"));
            }
        }
    }

    /// No stale owner has settled a message, and the database is intact.
    fn check_contents(&mut self) {
        for id in &self.contents.settled_twice {
            self.violation(format!("two attempts of {id} were settled"));
        }
        for damage in &self.contents.damage {
            self.violation(format!("the database is damaged: {damage}"));
        }
    }
}

/// Whether the caller knows neither that the request was accepted nor that it is invalid.
fn has_no_definite_answer(record: &RequestRecord) -> bool {
    let is_indefinite = |answer: &Answer| matches!(answer, Answer::Missing | Answer::Refused(503));
    record.answers.iter().all(is_indefinite)
}

/// What is wrong with the stored messages of a request, if anything.
fn check_stored(record: &RequestRecord, rows: &[&Row], tolerance: Tolerance) -> Option<String> {
    let (number, recipients) = (record.request.number, record.request.to.len());
    if rows.len() != recipients {
        return Some(format!(
            "request {number} became {} messages, not {recipients}",
            rows.len()
        ));
    }
    if record.ids().is_some() {
        let ids: BTreeSet<u64> = rows.iter().map(|row| row.id).collect();
        let answered: BTreeSet<u64> = record.ids()?.iter().copied().collect();
        return (ids != answered)
            .then(|| format!("request {number} was answered {answered:?} and is {ids:?}"));
    }
    // A request without an answer may be stored. A refused one must not be, unless a repetition with its key is
    // answered with its IDs.
    let is_unknown = record.answers.contains(&Answer::Missing) || record.answers.is_empty();
    let is_refused = record
        .answers
        .iter()
        .any(|answer| matches!(answer, Answer::Refused(_)));
    let may_be_stored = is_unknown || (tolerance.unknown_commits && !record.request.is_invalid);
    (is_refused && !may_be_stored).then(|| format!("request {number} was refused and is stored"))
}

fn check_report_contents(id: u64, reports: &[Report], row: Option<&Row>) -> Option<String> {
    let first = reports.first()?;
    let Some(row) = row else {
        return Some(format!("{id} was reported and does not exist: {first:?}"));
    };
    let is_right = |report: &&Report| {
        Some(report.number) == row.number
            && Some(report.final_state) == row.final_state
            && report.webhook_id == first.webhook_id
    };
    let wrong = reports.iter().find(|report| !is_right(report))?;
    Some(format!("{id} was reported as {wrong:?} and is {row:?}"))
}

/// A fault between two moments, or during the first, that explains no other duplicate of this part.
pub(super) fn find_cause(
    faults: &[Fault],
    [from, until]: [u64; 2],
    used: &HashSet<usize>,
) -> Option<usize> {
    let fits = |fault: &Fault| fault.from_ms <= until && fault.until_ms + IN_FLIGHT_MS >= from;
    let mut unused = (0..faults.len()).filter(|at| !used.contains(at));
    unused.find(|at| fits(&faults[*at]))
}
