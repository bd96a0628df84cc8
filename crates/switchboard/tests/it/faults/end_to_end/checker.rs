//! Compares the log with the guarantees.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::log::{Log, Observations, Report, is_received};
use super::requests::{FinalState, PlannedRequest};
use crate::faults::test_service::State;

/// How many messages may be sent to the network twice.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::faults) struct DuplicateLimits {
    /// Of the messages sent before a crash, this many may be sent again after it.
    pub(in crate::faults) after_each_crash: usize,
    /// This many in total may be sent again without a crash in between.
    pub(in crate::faults) otherwise: usize,
}

/// Checks every guarantee, given the log and the state that the service shows for each answered ID.
pub(super) fn check(log: &Log, states: &HashMap<u64, State>, limits: DuplicateLimits) {
    let observed = log.observed();
    let mut violations = observed.unexpected.clone();
    check_states(&observed, states, &mut violations);
    check_reports(&observed, &mut violations);
    check_network(&observed, limits, &mut violations);
    let shown = violations.len().min(20);
    assert!(
        violations.is_empty(),
        "{} violations, among them:\n{}",
        violations.len(),
        violations[..shown].join("\n")
    );
    summarize(&observed);
}

/// Every answered ID exists and is unique; its message has ended in the expected state.
fn check_states(
    observed: &Observations,
    states: &HashMap<u64, State>,
    violations: &mut Vec<String>,
) {
    let mut seen = HashSet::new();
    for (request, ids) in &observed.accepted {
        for (id, final_state) in ids.iter().zip(&request.final_states) {
            if !seen.insert(*id) {
                violations.push(format!("ID {id} was given twice"));
            }
            match states.get(id) {
                Some((_, Some(found))) if found == final_state => {}
                found => violations.push(format!("{id} is {found:?}, requested by {request:?}")),
            }
        }
    }
}

/// All reports of a message are equal, each expected report was received, none came early, and none is about a refused
/// request.
fn check_reports(observed: &Observations, violations: &mut Vec<String>) {
    let requests = RequestIndex::new(observed);
    for (id, reports) in &observed.reports {
        let Some(first) = reports.first() else {
            continue;
        };
        let differs = |report: &&Report| {
            (report.final_state, &report.webhook_id) != (first.final_state, &first.webhook_id)
                || report.number != first.number
        };
        if let Some(other) = reports.iter().find(differs) {
            violations.push(format!("{id} was reported as {first:?} and as {other:?}"));
        }
        if let Some(violation) = requests.find_violation(*id, first) {
            violations.push(violation);
        }
    }
    requests.find_repeated(observed, violations);
    let due = observed
        .accepted
        .iter()
        .filter(|(request, _)| request.reported);
    for id in due.flat_map(|(_, ids)| ids) {
        if !observed.reports.get(id).is_some_and(|all| is_received(all)) {
            violations.push(format!("{id} was never reported"));
        }
    }
}

/// The requests by message ID or by number.
struct RequestIndex<'a> {
    /// By message ID: the request, and the final state that the message must have.
    by_id: HashMap<u64, (&'a PlannedRequest, FinalState)>,
    /// By request number.
    unanswered: HashMap<u64, &'a PlannedRequest>,
}

impl<'a> RequestIndex<'a> {
    fn new(observed: &'a Observations) -> Self {
        let messages = observed.accepted.iter().flat_map(|(request, ids)| {
            let final_states = ids
                .iter()
                .copied()
                .zip(request.final_states.iter().copied());
            final_states.map(move |(id, final_state)| (id, (request, final_state)))
        });
        // A request may be stored although it was refused, if the database went away in between.
        let unanswered = observed.unanswered.iter().chain(&observed.refused);
        Self {
            by_id: messages.collect(),
            unanswered: unanswered
                .map(|request| (request.number, request))
                .collect(),
        }
    }

    /// What is wrong with a report, if anything.
    fn find_violation(&self, id: u64, report: &Report) -> Option<String> {
        let Some((request, final_states)) = self.find(id, report) else {
            return Some(format!("{id} was never accepted: {report:?}"));
        };
        if request.not_before.is_some_and(|time| report.at < time) {
            return Some(format!("{id} came early: {report:?}, {request:?}"));
        }
        let is_right = request.reported
            && request.number == report.number
            && final_states.contains(&report.final_state);
        (!is_right).then(|| format!("{id} was reported wrongly: {report:?}, {request:?}"))
    }

    /// The request that a report belongs to, and the final states that it allows.
    fn find(&self, id: u64, report: &Report) -> Option<(&'a PlannedRequest, &[FinalState])> {
        if let Some((request, final_state)) = self.by_id.get(&id) {
            return Some((request, std::slice::from_ref(final_state)));
        }
        let request = *self.unanswered.get(&report.number)?;
        (!request.final_states.is_empty()).then_some((request, &request.final_states[..]))
    }

    /// A request without an answer is stored once or not at all.
    fn find_repeated(&self, observed: &Observations, violations: &mut Vec<String>) {
        let mut stored: BTreeMap<u64, usize> = BTreeMap::new();
        for (id, reports) in &observed.reports {
            if let Some(first) = reports.first().filter(|_| !self.by_id.contains_key(id)) {
                *stored.entry(first.number).or_default() += 1;
            }
        }
        for (number, count) in stored {
            let max = self
                .unanswered
                .get(&number)
                .map_or(0, |request| request.final_states.len());
            if count > max {
                violations.push(format!("request {number} became {count} messages"));
            }
        }
    }
}

/// A message is sent to the network again only after a crash, and only if it was in the window at that time.
fn check_network(observed: &Observations, limits: DuplicateLimits, violations: &mut Vec<String>) {
    let mut later: HashSet<u64> = HashSet::new();
    let mut otherwise = 0;
    for (run, submits) in observed.runs.iter().enumerate().rev() {
        let repeated = submits.keys().filter(|id| later.contains(id)).count();
        if repeated > limits.after_each_crash {
            violations.push(format!(
                "{repeated} messages of run {run} were sent again later"
            ));
        }
        later.extend(submits.keys());
        otherwise += submits.values().map(|count| count - 1).sum::<usize>();
    }
    if otherwise > limits.otherwise {
        violations.push(format!(
            "{otherwise} messages were sent again without a crash"
        ));
    }
}

fn summarize(observed: &Observations) {
    let messages: usize = observed.accepted.iter().map(|(_, ids)| ids.len()).sum();
    let reports: usize = observed.reports.values().map(Vec::len).sum();
    let mut submits: HashMap<u64, usize> = HashMap::new();
    for (id, count) in observed.runs.iter().flatten() {
        *submits.entry(*id).or_default() += count;
    }
    let repeated: usize = submits.values().map(|count| count - 1).sum();
    println!(
        "{messages} messages answered, {} requests refused, {} invalid, {} unanswered; {} crashes, {} messages sent, \
         {repeated} sent again; {reports} reports on {} messages, {} seen",
        observed.refused.len(),
        observed.invalid.len(),
        observed.unanswered.len(),
        observed.runs.len().saturating_sub(1),
        submits.len(),
        observed.reports.len(),
        observed.seen,
    );
}
