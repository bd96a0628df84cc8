//! Holds the log against the promises.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::log::{Log, Pages, Report, is_received};
use super::orders::{End, Order};
use crate::faults::subject::State;

/// How often a message may be handed to the network twice.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::faults) struct Bounds {
    /// So many of those before each crash, again after it.
    pub(in crate::faults) after_each_crash: usize,
    /// So many in all, without a crash between.
    pub(in crate::faults) otherwise: usize,
}

/// Every promise, over everything that the log holds and what the service says of each answered ID.
pub(super) fn check(log: &Log, states: &HashMap<u64, State>, bounds: Bounds) {
    let pages = log.pages();
    let mut breaches = pages.wrong.clone();
    check_states(&pages, states, &mut breaches);
    check_reports(&pages, &mut breaches);
    check_network(&pages, bounds, &mut breaches);
    let shown = breaches.len().min(20);
    assert!(
        breaches.is_empty(),
        "{} promises broken, among them:\n{}",
        breaches.len(),
        breaches[..shown].join("\n")
    );
    summarize(&pages);
}

/// Every answered ID exists and stands once; its message has ended as it must.
fn check_states(pages: &Pages, states: &HashMap<u64, State>, breaches: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for (order, ids) in &pages.accepted {
        for (id, end) in ids.iter().zip(&order.ends) {
            if !seen.insert(*id) {
                breaches.push(format!("ID {id} was given twice"));
            }
            match states.get(id) {
                Some((_, Some(found))) if found == end => {}
                found => breaches.push(format!("{id} is {found:?}, asked for by {order:?}")),
            }
        }
    }
}

/// All reports of a message say the same and are the same; each that is due was received; none came early; none is
/// about an order that was refused.
fn check_reports(pages: &Pages, breaches: &mut Vec<String>) {
    let orders = Orders::of(pages);
    for (id, reports) in &pages.reports {
        let Some(first) = reports.first() else {
            continue;
        };
        let differs = |report: &&Report| {
            (report.end, &report.webhook_id) != (first.end, &first.webhook_id)
                || report.number != first.number
        };
        if let Some(other) = reports.iter().find(differs) {
            breaches.push(format!("{id} was reported as {first:?} and as {other:?}"));
        }
        if let Some(breach) = orders.judge(*id, first) {
            breaches.push(breach);
        }
    }
    orders.find_repeated(pages, breaches);
    let due = pages.accepted.iter().filter(|(order, _)| order.reported);
    for id in due.flat_map(|(_, ids)| ids) {
        if !pages.reports.get(id).is_some_and(|all| is_received(all)) {
            breaches.push(format!("{id} was never reported"));
        }
    }
}

/// The orders by what became of them.
struct Orders<'a> {
    /// By message: what was asked, and how it must end.
    known: HashMap<u64, (&'a Order, End)>,
    /// By number.
    unanswered: HashMap<u64, &'a Order>,
}

impl<'a> Orders<'a> {
    fn of(pages: &'a Pages) -> Self {
        let messages = pages.accepted.iter().flat_map(|(order, ids)| {
            let ends = ids.iter().copied().zip(order.ends.iter().copied());
            ends.map(move |(id, end)| (id, (order, end)))
        });
        // A database that went away may have stored what it then refused.
        let unanswered = pages.unanswered.iter().chain(&pages.refused);
        Self {
            known: messages.collect(),
            unanswered: unanswered.map(|order| (order.number, order)).collect(),
        }
    }

    /// What is wrong with a report, if anything.
    fn judge(&self, id: u64, report: &Report) -> Option<String> {
        let Some((order, ends)) = self.find(id, report) else {
            return Some(format!("{id} was never accepted: {report:?}"));
        };
        if order.not_before.is_some_and(|time| report.at < time) {
            return Some(format!("{id} came early: {report:?}, {order:?}"));
        }
        let right = order.reported && order.number == report.number && ends.contains(&report.end);
        (!right).then(|| format!("{id} was reported wrongly: {report:?}, {order:?}"))
    }

    /// The order behind a report, and how it may have ended.
    fn find(&self, id: u64, report: &Report) -> Option<(&'a Order, &[End])> {
        if let Some((order, end)) = self.known.get(&id) {
            return Some((order, std::slice::from_ref(end)));
        }
        let order = *self.unanswered.get(&report.number)?;
        (!order.ends.is_empty()).then_some((order, &order.ends[..]))
    }

    /// An order without an answer is stored once or not at all.
    fn find_repeated(&self, pages: &Pages, breaches: &mut Vec<String>) {
        let mut stored: BTreeMap<u64, usize> = BTreeMap::new();
        for (id, reports) in &pages.reports {
            if let Some(first) = reports.first().filter(|_| !self.known.contains_key(id)) {
                *stored.entry(first.number).or_default() += 1;
            }
        }
        for (number, count) in stored {
            let most = self
                .unanswered
                .get(&number)
                .map_or(0, |order| order.ends.len());
            if count > most {
                breaches.push(format!("order {number} became {count} messages"));
            }
        }
    }
}

/// A message is handed to the network again only when a crash came between, and only if it was in the window then.
fn check_network(pages: &Pages, bounds: Bounds, breaches: &mut Vec<String>) {
    let mut later: HashSet<u64> = HashSet::new();
    let mut otherwise = 0;
    for (era, submits) in pages.eras.iter().enumerate().rev() {
        let again = submits.keys().filter(|id| later.contains(id)).count();
        if again > bounds.after_each_crash {
            breaches.push(format!("{again} of era {era} were sent again later"));
        }
        later.extend(submits.keys());
        otherwise += submits.values().map(|count| count - 1).sum::<usize>();
    }
    if otherwise > bounds.otherwise {
        breaches.push(format!("{otherwise} were sent again without a crash"));
    }
}

fn summarize(pages: &Pages) {
    let messages: usize = pages.accepted.iter().map(|(_, ids)| ids.len()).sum();
    let reports: usize = pages.reports.values().map(Vec::len).sum();
    let mut submits: HashMap<u64, usize> = HashMap::new();
    for (id, count) in pages.eras.iter().flatten() {
        *submits.entry(*id).or_default() += count;
    }
    let again: usize = submits.values().map(|count| count - 1).sum();
    println!(
        "{messages} messages answered, {} orders refused, {} invalid, {} unanswered; {} crashes, {} messages sent, \
         {again} times again; {reports} reports on {} messages, {} seen",
        pages.refused.len(),
        pages.invalid.len(),
        pages.unanswered.len(),
        pages.eras.len().saturating_sub(1),
        submits.len(),
        pages.reports.len(),
        pages.seen,
    );
}
