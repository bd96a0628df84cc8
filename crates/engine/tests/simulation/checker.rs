//! What must hold when a run has finished.

use std::collections::BTreeMap;

use domain::delivery::report_payload;
use domain::message::AcceptedMessages;
use domain::{Code, Outcome, Timestamp};
use jiff::SignedDuration;
use memory_store::Row;

use super::OPTED_OUT;
use super::environment::State;

/// How late a scheduled message may be after the faults have stopped.
const MAX_LATENESS: SignedDuration = SignedDuration::from_secs(2);

/// A request and what its caller knows about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentRequest {
    /// `None` if the caller got no answer and did not repeat the request.
    pub(super) answer: Option<AcceptedMessages>,
    /// The idempotency key.
    pub(super) key: Option<[u8; 32]>,
}

/// Every rule that was broken.
pub(super) fn check(state: &State, requests: &[SentRequest], healed_at: Timestamp) -> Vec<String> {
    let mut breaches = Vec::new();
    answers(state, requests, &mut breaches);
    ends(state, &mut breaches);
    reports(state, &mut breaches);
    money(state, &mut breaches);
    submits(state, healed_at, &mut breaches);
    opt_outs(state, &mut breaches);
    breaches
}

/// Every ID in an answer exists. One key creates one submission, and its answer is always the same.
fn answers(state: &State, requests: &[SentRequest], breaches: &mut Vec<String>) {
    let mut by_key: BTreeMap<[u8; 32], AcceptedMessages> = BTreeMap::new();
    for request in requests {
        let Some(answer) = request.answer else {
            continue;
        };
        for id in answer.ids() {
            if !state.model.messages.contains_key(&id) {
                breaches.push(format!("{id} was answered and is not stored"));
            }
        }
        if let Some(key) = request.key {
            let first = *by_key.entry(key).or_insert(answer);
            if first != answer {
                breaches.push(format!("one key, two answers: {first:?} and {answer:?}"));
            }
        }
    }
    let keyed: usize = state
        .model
        .keys
        .values()
        .map(|(_, receipt)| receipt.messages as usize)
        .sum();
    let unkeyed = requests
        .iter()
        .filter(|request| request.key.is_none())
        .count();
    let stored = state.model.messages.len();
    if stored > keyed + unkeyed {
        breaches.push(format!(
            "{stored} messages are stored, {keyed} by keys and at most {unkeyed} without"
        ));
    }
}

/// Every message ended exactly once.
fn ends(state: &State, breaches: &mut Vec<String>) {
    for (id, row) in &state.model.messages {
        match (row.ended, row.ends) {
            (None, _) => {
                breaches.push(format!("{id} never ended: {:?}", state.model.queue.get(id)));
            }
            (Some(_), 1) => {}
            (Some(_), times) => breaches.push(format!("{id} ended {times} times")),
        }
    }
}

/// Every requested report was received, and every report has the right outcome.
fn reports(state: &State, breaches: &mut Vec<String>) {
    for (id, row) in &state.model.messages {
        let reports = state
            .received_reports
            .get(id)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if row.dlr_url.is_some() && reports.is_empty() {
            breaches.push(format!("no report about {id} was received"));
        }
        let Some((outcome, _)) = row.ended else {
            continue;
        };
        let expected = report_payload(row.queued.id, outcome, row.network);
        if let Some(wrong) = reports.iter().find(|payload| **payload != expected) {
            breaches.push(format!(
                "{id} ended as {expected}, but the report was {wrong}"
            ));
        }
    }
    for (id, report) in &state.model.reports {
        if !report.is_done {
            let entry = state.model.report_queue.get(id);
            breaches.push(format!("report {id} was never settled: {entry:?}"));
        }
    }
}

/// The ledger, the messages and the balance agree.
fn money(state: &State, breaches: &mut Vec<String>) {
    let paid = |row: &Row| if row.refunded { 0 } else { -row.price };
    let messages: i64 = state.model.messages.values().map(paid).sum();
    let ledger: i64 = state.model.ledger.iter().sum();
    let balance = state.model.balance;
    if messages != ledger || ledger != balance {
        breaches.push(format!(
            "messages cost {messages}, the ledger says {ledger}, the balance {balance}"
        ));
    }
}

/// No message is sent early, nothing is sent again unless its node was considered dead or the network did not answer,
/// then to no other network, and messages are sent on time after the faults have stopped.
fn submits(state: &State, healed_at: Timestamp, breaches: &mut Vec<String>) {
    for (id, times) in &state.submits {
        let Some(row) = state.model.messages.get(id) else {
            breaches.push(format!("{id} was sent and is not stored"));
            continue;
        };
        if times.iter().any(|time| *time < row.due_at) {
            breaches.push(format!("{id} was sent early"));
        }
        if row.given_up == 0 && state.strayed.contains(id) {
            breaches.push(format!("{id} went to another network, too"));
        }
        let unanswered = state.unanswered.get(id).map_or(0, |(_, times)| *times);
        let allowed = 1 + row.given_up as usize + unanswered;
        if times.len() > allowed {
            let given_up = row.given_up;
            breaches.push(format!(
                "{id} was sent {} times, its node given up {given_up} times",
                times.len()
            ));
        }
        if row.due_at >= healed_at && times[0].duration_since(row.due_at) > MAX_LATENESS {
            breaches.push(format!(
                "{id} was sent late: {} for {}",
                times[0], row.due_at
            ));
        }
    }
}

/// A message to a recipient that opted out ends with the code for it, unpaid and never sent; no other one does.
fn opt_outs(state: &State, breaches: &mut Vec<String>) {
    for (id, row) in &state.model.messages {
        let outcome = row.ended.map(|(outcome, _)| outcome);
        let is_refused = outcome == Some(Outcome::Failed(Code::OPTED_OUT));
        let is_paid = row.price != 0;
        let opted_out = row.queued.to.to_string() == OPTED_OUT;
        if is_refused != opted_out || is_paid == opted_out {
            breaches.push(format!(
                "{id} to {} ended as {outcome:?} at the price {}",
                row.queued.to, row.price
            ));
        }
        if opted_out && state.submits.contains_key(id) {
            breaches.push(format!("{id} was sent to a recipient that opted out"));
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Msisdn;
    use memory_store::Model;

    use super::super::Run;
    use super::*;

    /// A name, a change that a defect could have made to the final state, and a part of the expected breach.
    type Defect = (&'static str, fn(&mut State, u64), &'static str);

    fn model(state: &mut State) -> &mut Model {
        &mut state.model
    }

    const DEFECTS: &[Defect] = &[
        (
            "a message is lost",
            |state, id| {
                model(state).messages.remove(&id);
            },
            "was answered and is not stored",
        ),
        (
            "a message ends twice",
            |state, id| model(state).messages.get_mut(&id).expect("there").ends = 2,
            "ended 2 times",
        ),
        (
            "a message never ends",
            |state, id| model(state).messages.get_mut(&id).expect("there").ended = None,
            "never ended",
        ),
        (
            "a report is lost",
            |state, id| {
                state.received_reports.remove(&id);
            },
            "no report about",
        ),
        (
            "a report has the wrong outcome",
            |state, id| {
                state
                    .received_reports
                    .entry(id)
                    .or_default()
                    .push("{}".to_owned());
            },
            "but the report was {}",
        ),
        (
            "a report is never settled",
            |state, _| {
                let report = model(state).reports.values_mut().next();
                report.expect("one").is_done = false;
            },
            "was never settled",
        ),
        (
            "a charge is missing",
            |state, _| {
                model(state).ledger.pop();
            },
            "the ledger says",
        ),
        (
            "a charge is made twice",
            |state, _| model(state).balance -= 1,
            "the balance",
        ),
        (
            "a message is sent again",
            |state, id| {
                let times = state.submits.entry(id).or_default();
                let last = *times.last().expect("sent");
                times.extend([last; 20]);
            },
            "times, its node given up",
        ),
        (
            "a message goes to another network",
            |state, id| {
                model(state).messages.get_mut(&id).expect("there").given_up = 0;
                state.strayed.insert(id);
            },
            "went to another network, too",
        ),
        (
            "a message is sent early",
            |state, id| {
                let row = model(state).messages.get_mut(&id).expect("there");
                row.due_at += SignedDuration::from_hours(1);
            },
            "was sent early",
        ),
        (
            "a message is sent late",
            |state, id| {
                let times = state.submits.get_mut(&id).expect("sent");
                times[0] += SignedDuration::from_hours(1);
            },
            "was sent late",
        ),
        (
            "a message is sent although its recipient opted out",
            |state, id| {
                let row = model(state).messages.get_mut(&id).expect("there");
                row.queued.to = Msisdn::parse(OPTED_OUT).expect("a number");
            },
            "was sent to a recipient that opted out",
        ),
        (
            "a message is refused although its recipient did not opt out",
            |state, id| {
                let row = model(state).messages.get_mut(&id).expect("there");
                let at = row.due_at;
                row.ended = Some((Outcome::Failed(Code::OPTED_OUT), at));
            },
            "at the price",
        ),
        (
            "a message is sent that is not stored",
            |state, _| {
                state.submits.insert(u64::MAX, Vec::new());
            },
            "was sent and is not stored",
        ),
    ];

    #[test]
    fn every_kind_of_breach_is_found() {
        for (name, spoil, expected) in DEFECTS {
            let run = Run::simulate(3, false);
            assert_eq!(run.breaches(), [] as [&str; 0], "{name}: before");
            let reported = {
                let state = run.env.state();
                let is_reported = |id: &u64| state.received_reports.contains_key(id);
                // One of the last requests, so that it can be late.
                let id = state
                    .submits
                    .keys()
                    .rev()
                    .find(|id| is_reported(id))
                    .copied();
                id.expect("a message that was sent and reported")
            };
            spoil(&mut run.env.state(), reported);
            let answer = AcceptedMessages {
                first: domain::MessageId::new(reported).expect("an ID"),
                messages: 1,
                parts: 1,
            };
            let answered = [SentRequest {
                answer: Some(answer),
                key: None,
            }];
            let requests = [run.requests.as_slice(), &answered].concat();
            let found = check(&run.env.state(), &requests, Timestamp::MIN);
            let is_found = found.iter().any(|breach| breach.contains(expected));
            assert!(is_found, "{name}: {found:?}");
        }
    }

    #[test]
    fn a_key_has_one_answer() {
        let run = Run::simulate(3, false);
        let answer = |first| {
            Some(AcceptedMessages {
                first: domain::MessageId::new(first).expect("an ID"),
                messages: 1,
                parts: 1,
            })
        };
        let requests = [1, 2].map(|first| SentRequest {
            answer: answer(first),
            key: Some([7; 32]),
        });
        let found = check(&run.env.state(), &requests, run.healed_at);
        let is_found = found.iter().any(|breach| breach.contains("two answers"));
        assert!(is_found, "{found:?}");
    }
}
