//! Proves that the checker can fail: it must find each kind of violation.

use std::time::Duration;

use super::checker::{LATEST_MS, Lateness, Tolerance, Verdict, check};
use super::contents::{AccountFunds, DatabaseContents, Row};
use super::log::{Answer, CANCELLED, Fault, Observations, Report, RequestRecord, Stall, Submit};
use super::requests::PlannedRequest;

mod repetitions;

const STRICT: Tolerance = Tolerance {
    unknown_commits: false,
};
const PRICE: i64 = 50_000;
const ACCOUNT: i64 = 1;
const DELIVERED: (u64, u64) = (1, 0);

/// Starts without a violation: request 1 is plain, 2 has a key and two answers, 3 is refused, 4 cancelled, 5 scheduled,
/// 6 refunded.
struct CheckerInput {
    observed: Observations,
    contents: DatabaseContents,
}

impl CheckerInput {
    fn new() -> Self {
        let mut input = Self {
            observed: Observations {
                faults_over_ms: Some(5000),
                ..Observations::default()
            },
            contents: DatabaseContents::default(),
        };
        input.add(PlannedRequest::plain(1), &[Answer::Ids(vec![11])]);
        let keyed = PlannedRequest {
            is_keyed: true,
            ..PlannedRequest::plain(2)
        };
        input.add(
            keyed,
            &[
                Answer::Missing,
                Answer::Ids(vec![12]),
                Answer::Ids(vec![12]),
            ],
        );
        input.add(PlannedRequest::plain(3), &[Answer::Refused(503)]);
        let mut cancelled = PlannedRequest {
            is_cancelled: true,
            is_reported: false,
            not_before_ms: Some(90_000),
            ..PlannedRequest::plain(4)
        };
        cancelled.to[0].1 = CANCELLED;
        input.add(cancelled, &[Answer::Ids(vec![14])]);
        input.record(4).cancelled = Some(Answer::Ids(vec![14]));
        let scheduled = PlannedRequest {
            not_before_ms: Some(6000),
            ..PlannedRequest::plain(5)
        };
        input.add(scheduled, &[Answer::Ids(vec![15])]);
        let mut refunded = PlannedRequest::plain(6);
        refunded.to[0].1 = (2, 53);
        input.add(refunded, &[Answer::Ids(vec![16])]);
        input.update_funds();
        input
    }

    fn add(&mut self, request: PlannedRequest, answers: &[Answer]) {
        let number = request.number;
        let record = RequestRecord {
            request: request.clone(),
            began_ms: 100,
            answers: answers.to_vec(),
            cancelled: None,
        };
        let ids = record.ids().map(<[u64]>::to_vec).unwrap_or_default();
        self.observed.requests.insert(number, record);
        for (id, (to, final_state)) in ids.into_iter().zip(request.to) {
            self.store(id, number, to, final_state);
            self.observed
                .status_checks
                .insert(id, vec![None, Some(final_state)]);
            if request.is_reported {
                let report = Report {
                    number,
                    webhook_id: Some(format!("r-{id}")),
                    final_state,
                    received: true,
                    at_ms: 100,
                };
                self.observed.reports.insert(id, vec![report]);
            }
            if final_state != CANCELLED {
                let at_ms = request.not_before_ms.unwrap_or(100) + 10;
                self.submit(number, to, at_ms);
            }
        }
    }

    fn store(&mut self, id: u64, number: u64, to: u64, final_state: (u64, u64)) {
        self.contents.rows.push(Row {
            id,
            number: Some(number),
            to,
            final_state: Some(final_state),
            account: ACCOUNT,
            price: PRICE,
        });
    }

    fn submit(&mut self, number: u64, to: u64, at_ms: u64) {
        self.observed.submits.push(Submit {
            number,
            to,
            part: 1,
            at_ms,
        });
    }

    fn update_funds(&mut self) {
        let cost: i64 = self.contents.rows.iter().map(Row::cost).sum();
        self.contents.funds = vec![AccountFunds {
            account: ACCOUNT,
            balance: 1_000_000 - cost,
            ledger: 1_000_000 - cost,
            traffic: -cost,
        }];
    }

    fn record(&mut self, number: u64) -> &mut RequestRecord {
        self.observed.requests.get_mut(&number).expect("a request")
    }

    fn row(&mut self, id: u64) -> &mut Row {
        let mut rows = self.contents.rows.iter_mut();
        rows.find(|row| row.id == id).expect("a message")
    }

    /// Sends the scheduled message this long after its time.
    fn send_late(&mut self, late_ms: u64) {
        let mut submits = self.observed.submits.iter_mut();
        let late = submits.find(|submit| submit.number == 5);
        late.expect("it was sent").at_ms = 6000 + late_ms;
    }

    fn stall(&mut self, from_ms: u64, until_ms: u64, lost_ms: u64) {
        self.observed.stalls.push(Stall {
            from_ms,
            until_ms,
            lost: Duration::from_millis(lost_ms),
        });
    }

    fn check(&self) -> Verdict {
        check(&self.observed, &self.contents, STRICT)
    }
}

#[test]
fn a_correct_run_has_no_violation() {
    let verdict = CheckerInput::new().check();
    assert_eq!(verdict.violations, Vec::<String>::new());
    assert_eq!(
        (verdict.messages, verdict.lost, verdict.duplicates),
        (5, 0, 0)
    );
}

/// The name, a change to a correct run, and what the checker must say.
type Violation = (&'static str, fn(&mut CheckerInput), &'static str);

const VIOLATIONS: &[Violation] = &[
    (
        "an answered message is gone",
        |input| input.contents.rows.retain(|row| row.id != 11),
        "is lost",
    ),
    (
        "an ID is given twice",
        |input| input.record(2).answers = vec![Answer::Ids(vec![11])],
        "was given to",
    ),
    (
        "an ID belongs to another message",
        |input| input.row(11).to += 1,
        "is Row",
    ),
    (
        "too few IDs",
        |input| input.record(1).answers = vec![Answer::Ids(vec![])],
        "got []",
    ),
    (
        "a message never ended",
        |input| input.row(11).final_state = None,
        "never ended",
    ),
    (
        "a message ended in the wrong state",
        |input| input.row(11).final_state = Some((2, 43)),
        "and not as",
    ),
    (
        "a final state changed",
        |input| {
            drop(
                input
                    .observed
                    .status_checks
                    .insert(11, vec![Some((2, 43)), Some(DELIVERED)]),
            );
        },
        "was seen as",
    ),
    (
        "a final state was undone",
        |input| {
            drop(
                input
                    .observed
                    .status_checks
                    .insert(11, vec![Some(DELIVERED), None]),
            );
        },
        "was seen as",
    ),
    (
        "a report is missing",
        |input| drop(input.observed.reports.remove(&11)),
        "report is nowhere",
    ),
    (
        "a report was never received",
        |input| input.observed.reports.get_mut(&11).expect("a report")[0].received = false,
        "report is nowhere",
    ),
    (
        "a report belongs to another request",
        |input| input.observed.reports.get_mut(&11).expect("a report")[0].number = 5,
        "was reported as",
    ),
    (
        "two different reports of one message",
        |input| {
            let reports = input.observed.reports.get_mut(&11).expect("a report");
            let second = Report {
                webhook_id: Some("other".to_owned()),
                ..reports[0].clone()
            };
            reports.push(second);
        },
        "was reported as",
    ),
    (
        "a report of an unknown message",
        |input| {
            let report = input.observed.reports[&11].clone();
            input.observed.reports.insert(99, report);
        },
        "does not exist",
    ),
    (
        "a balance differs from the ledger",
        |input| input.contents.funds[0].balance += 1,
        "messages cost",
    ),
    (
        "charged twice",
        |input| input.contents.funds[0].traffic -= PRICE,
        "messages cost",
    ),
    (
        "sent early",
        |input| {
            input
                .observed
                .submits
                .iter_mut()
                .for_each(|submit| submit.at_ms = 50);
        },
        "was sent at",
    ),
    (
        "sent late",
        |input| input.send_late(LATEST_MS + 1),
        "was sent at",
    ),
    (
        "sent later than a stall explains",
        |input| {
            input.send_late(LATEST_MS + 1001);
            input.stall(6000, 9001, 1000);
        },
        "was sent at",
    ),
    (
        "sent late after a stall that was over",
        |input| {
            input.send_late(LATEST_MS + 1);
            input.stall(3000, 6000, 3000);
        },
        "was sent at",
    ),
    (
        "never sent, on a machine that stalled",
        |input| {
            input.observed.submits.retain(|submit| submit.number != 5);
            input.stall(0, 60_000, 60_000);
        },
        "was sent at None",
    ),
    (
        "sent early, on a machine that stalled",
        |input| {
            input.submit(5, 1, 5999);
            input.stall(0, 60_000, 60_000);
        },
        "was sent at",
    ),
    (
        "sent twice, on a machine that stalled",
        |input| {
            let to = input.record(1).request.to[0].0;
            input.submit(1, to, 4000);
            input.stall(0, 60_000, 60_000);
        },
        "without a cause",
    ),
    (
        "cancelled and sent",
        |input| input.submit(4, 1, 90_010),
        "cancelled and sent",
    ),
    (
        "sent twice without a cause",
        |input| {
            let to = input.record(1).request.to[0].0;
            input.submit(1, to, 4000);
        },
        "without a cause",
    ),
    (
        "more duplicates than a fault may cause",
        |input| {
            input.observed.faults.push(Fault {
                from_ms: 0,
                until_ms: 5000,
                max_duplicates: 0,
            });
            let to = input.record(1).request.to[0].0;
            input.submit(1, to, 4000);
        },
        "were sent again after",
    ),
    (
        "sent three times for one fault",
        |input| {
            input.observed.faults.push(Fault {
                from_ms: 0,
                until_ms: 5000,
                max_duplicates: 9,
            });
            let to = input.record(1).request.to[0].0;
            input.submit(1, to, 3000);
            input.submit(1, to, 4000);
        },
        "without a cause",
    ),
    (
        "two messages for a key",
        |input| {
            input.store(17, 2, 37_120_000_003, DELIVERED);
            input.update_funds();
        },
        "became 2 messages",
    ),
    (
        "two answers for a key",
        |input| input.record(2).answers.push(Answer::Ids(vec![13])),
        "the key of request 2 gave",
    ),
    (
        "refused and stored",
        |input| {
            input.store(13, 3, 37_120_000_004, DELIVERED);
            input.update_funds();
        },
        "was refused and is stored",
    ),
    (
        "stored, but never requested",
        |input| {
            input.store(18, 77, 37_120_000_004, DELIVERED);
            input.update_funds();
        },
        "nobody sent request",
    ),
    (
        "an invalid request is accepted",
        |input| input.record(1).request.is_invalid = true,
        "request 1 was answered",
    ),
    (
        "a stale owner has settled",
        |input| input.contents.settled_twice.push(11),
        "two attempts of 11",
    ),
    (
        "a broken index",
        |input| input.contents.damage.push("index".to_owned()),
        "is damaged",
    ),
    (
        "an unexpected answer to a caller",
        |input| input.observed.unexpected.push("418".to_owned()),
        "418",
    ),
];

#[test]
fn each_violation_is_found() {
    for (name, corrupt, expected) in VIOLATIONS {
        let mut input = CheckerInput::new();
        corrupt(&mut input);
        let violations = input.check().violations;
        assert!(
            violations
                .iter()
                .any(|violation| violation.contains(expected)),
            "{name}: {violations:?}"
        );
    }
}

#[test]
fn a_commit_of_unknown_outcome_is_a_violation_only_where_it_is_not_expected() {
    let mut input = CheckerInput::new();
    let to = input.record(3).request.to[0].0;
    input.store(13, 3, to, DELIVERED);
    input.update_funds();
    let tolerance = Tolerance {
        unknown_commits: true,
    };
    assert_eq!(
        check(&input.observed, &input.contents, tolerance).violations,
        Vec::<String>::new()
    );
    assert_ne!(input.check().violations, Vec::<String>::new());
}

#[test]
fn lateness_that_a_stall_explains_is_no_violation_and_is_measured() {
    let mut input = CheckerInput::new();
    input.send_late(LATEST_MS + 1000);
    // Half of the second stall is after the message was sent.
    input.stall(6000, 7000, 500);
    input.stall(8000, 10_000, 1000);
    let verdict = input.check();
    assert_eq!(verdict.violations, Vec::<String>::new());
    assert_eq!(verdict.late, 0);
    let latest = Lateness {
        late_ms: 3000,
        stalled_ms: 1000,
    };
    assert_eq!(verdict.latest, Some(latest));
}
