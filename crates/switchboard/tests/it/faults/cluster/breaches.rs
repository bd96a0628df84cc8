//! The checker can fail: each kind of breach is fed to it, and it says so.

use std::time::Duration;

use super::books::{Books, Purse, Row};
use super::checker::{LATEST_MS, Lateness, Leave, Verdict, check};
use super::log::{CANCELLED, Case, Fault, Pages, Report, Stall, Submit, Told};
use super::orders::Order;

const STRICT: Leave = Leave {
    unknown_commits: false,
};
const PRICE: i64 = 50_000;
const ACCOUNT: i64 = 1;
const DELIVERED: (u64, u64) = (1, 0);

/// A day on which nothing is wrong: order 1 is plain, order 2 keyed and told twice, order 3 refused, order 4 taken
/// back, order 5 scheduled, order 6 paid back.
struct Day {
    pages: Pages,
    books: Books,
}

impl Day {
    fn new() -> Self {
        let mut day = Self {
            pages: Pages {
                calm_ms: Some(5000),
                ..Pages::default()
            },
            books: Books::default(),
        };
        day.add(Order::plain(1), &[Told::Ids(vec![11])]);
        let keyed = Order {
            is_keyed: true,
            ..Order::plain(2)
        };
        day.add(
            keyed,
            &[Told::Nothing, Told::Ids(vec![12]), Told::Ids(vec![12])],
        );
        day.add(Order::plain(3), &[Told::Refused(503)]);
        let mut cancelled = Order {
            is_cancelled: true,
            is_reported: false,
            not_before_ms: Some(90_000),
            ..Order::plain(4)
        };
        cancelled.to[0].1 = CANCELLED;
        day.add(cancelled, &[Told::Ids(vec![14])]);
        day.case(4).cancelled = Some(Told::Ids(vec![14]));
        let scheduled = Order {
            not_before_ms: Some(6000),
            ..Order::plain(5)
        };
        day.add(scheduled, &[Told::Ids(vec![15])]);
        let mut paid_back = Order::plain(6);
        paid_back.to[0].1 = (2, 53);
        day.add(paid_back, &[Told::Ids(vec![16])]);
        day.settle_up();
        day
    }

    fn add(&mut self, order: Order, told: &[Told]) {
        let number = order.number;
        let case = Case {
            order: order.clone(),
            told: told.to_vec(),
            cancelled: None,
        };
        let ids = case.ids().map(<[u64]>::to_vec).unwrap_or_default();
        self.pages.cases.insert(number, case);
        for (id, (to, end)) in ids.into_iter().zip(order.to) {
            self.store(id, number, to, end);
            self.pages.looks.insert(id, vec![None, Some(end)]);
            if order.is_reported {
                let report = Report {
                    number,
                    webhook_id: format!("r-{id}"),
                    end,
                    received: true,
                };
                self.pages.reports.insert(id, vec![report]);
            }
            if end != CANCELLED {
                let at_ms = order.not_before_ms.unwrap_or(100) + 10;
                self.submit(number, to, at_ms);
            }
        }
    }

    fn store(&mut self, id: u64, number: u64, to: u64, end: (u64, u64)) {
        self.books.rows.push(Row {
            id,
            number: Some(number),
            to,
            end: Some(end),
            account: ACCOUNT,
            price: PRICE,
        });
    }

    fn submit(&mut self, number: u64, to: u64, at_ms: u64) {
        self.pages.submits.push(Submit {
            number,
            to,
            part: 1,
            at_ms,
        });
    }

    fn settle_up(&mut self) {
        let cost: i64 = self.books.rows.iter().map(Row::cost).sum();
        self.books.purses = vec![Purse {
            account: ACCOUNT,
            balance: 1_000_000 - cost,
            ledger: 1_000_000 - cost,
            traffic: -cost,
        }];
    }

    fn case(&mut self, number: u64) -> &mut Case {
        self.pages.cases.get_mut(&number).expect("an order")
    }

    fn row(&mut self, id: u64) -> &mut Row {
        let mut rows = self.books.rows.iter_mut();
        rows.find(|row| row.id == id).expect("a message")
    }

    /// Sends the scheduled message so long after its time.
    fn send_late(&mut self, late_ms: u64) {
        let mut submits = self.pages.submits.iter_mut();
        let late = submits.find(|submit| submit.number == 5);
        late.expect("it was sent").at_ms = 6000 + late_ms;
    }

    fn stall(&mut self, from_ms: u64, until_ms: u64, lost_ms: u64) {
        self.pages.stalls.push(Stall {
            from_ms,
            until_ms,
            lost: Duration::from_millis(lost_ms),
        });
    }

    fn check(&self) -> Verdict {
        check(&self.pages, &self.books, STRICT)
    }
}

#[test]
fn a_good_day_breaks_no_promise() {
    let verdict = Day::new().check();
    assert_eq!(verdict.breaches, Vec::<String>::new());
    assert_eq!(
        (verdict.messages, verdict.lost, verdict.duplicates),
        (5, 0, 0)
    );
}

/// What is done to a good day, and what the checker must say then.
type Breach = (&'static str, fn(&mut Day), &'static str);

const BREACHES: &[Breach] = &[
    (
        "an answered message is gone",
        |day| day.books.rows.retain(|row| row.id != 11),
        "is lost",
    ),
    (
        "an ID is given twice",
        |day| day.case(2).told = vec![Told::Ids(vec![11])],
        "was given to",
    ),
    (
        "an ID is another's message",
        |day| day.row(11).to += 1,
        "is Row",
    ),
    (
        "too few IDs",
        |day| day.case(1).told = vec![Told::Ids(vec![])],
        "got []",
    ),
    (
        "it never ended",
        |day| day.row(11).end = None,
        "never ended",
    ),
    (
        "it ended wrongly",
        |day| day.row(11).end = Some((2, 43)),
        "and not as",
    ),
    (
        "its end changed",
        |day| {
            drop(
                day.pages
                    .looks
                    .insert(11, vec![Some((2, 43)), Some(DELIVERED)]),
            );
        },
        "was seen as",
    ),
    (
        "its end was taken back",
        |day| drop(day.pages.looks.insert(11, vec![Some(DELIVERED), None])),
        "was seen as",
    ),
    (
        "its report is nowhere",
        |day| drop(day.pages.reports.remove(&11)),
        "report is nowhere",
    ),
    (
        "its report was never received",
        |day| day.pages.reports.get_mut(&11).expect("a report")[0].received = false,
        "report is nowhere",
    ),
    (
        "its report is another's",
        |day| day.pages.reports.get_mut(&11).expect("a report")[0].number = 5,
        "was reported as",
    ),
    (
        "two reports of one message",
        |day| {
            let reports = day.pages.reports.get_mut(&11).expect("a report");
            let second = Report {
                webhook_id: "other".to_owned(),
                ..reports[0].clone()
            };
            reports.push(second);
        },
        "was reported as",
    ),
    (
        "a report of nothing",
        |day| {
            let report = day.pages.reports[&11].clone();
            day.pages.reports.insert(99, report);
        },
        "does not exist",
    ),
    (
        "a balance without a ledger",
        |day| day.books.purses[0].balance += 1,
        "messages cost",
    ),
    (
        "charged twice",
        |day| day.books.purses[0].traffic -= PRICE,
        "messages cost",
    ),
    (
        "sent early",
        |day| {
            day.pages
                .submits
                .iter_mut()
                .for_each(|submit| submit.at_ms = 50);
        },
        "was sent at",
    ),
    (
        "sent late",
        |day| day.send_late(LATEST_MS + 1),
        "was sent at",
    ),
    (
        "sent later than a stall explains",
        |day| {
            day.send_late(LATEST_MS + 1001);
            day.stall(6000, 9001, 1000);
        },
        "was sent at",
    ),
    (
        "sent late after a stall that was over",
        |day| {
            day.send_late(LATEST_MS + 1);
            day.stall(3000, 6000, 3000);
        },
        "was sent at",
    ),
    (
        "never sent, on a machine that stood still",
        |day| {
            day.pages.submits.retain(|submit| submit.number != 5);
            day.stall(0, 60_000, 60_000);
        },
        "was sent at None",
    ),
    (
        "sent early, on a machine that stood still",
        |day| {
            day.submit(5, 1, 5999);
            day.stall(0, 60_000, 60_000);
        },
        "was sent at",
    ),
    (
        "sent twice, on a machine that stood still",
        |day| {
            let to = day.case(1).order.to[0].0;
            day.submit(1, to, 4000);
            day.stall(0, 60_000, 60_000);
        },
        "without a cause",
    ),
    (
        "taken back and sent",
        |day| day.submit(4, 1, 90_010),
        "taken back and sent",
    ),
    (
        "sent twice without a cause",
        |day| {
            let to = day.case(1).order.to[0].0;
            day.submit(1, to, 4000);
        },
        "without a cause",
    ),
    (
        "sent twice too often for one fault",
        |day| {
            day.pages.faults.push(Fault {
                from_ms: 0,
                until_ms: 5000,
                most: 0,
            });
            let to = day.case(1).order.to[0].0;
            day.submit(1, to, 4000);
        },
        "were sent again after",
    ),
    (
        "sent three times for one fault",
        |day| {
            day.pages.faults.push(Fault {
                from_ms: 0,
                until_ms: 5000,
                most: 9,
            });
            let to = day.case(1).order.to[0].0;
            day.submit(1, to, 3000);
            day.submit(1, to, 4000);
        },
        "without a cause",
    ),
    (
        "two messages for a key",
        |day| {
            day.store(17, 2, 37_120_000_003, DELIVERED);
            day.settle_up();
        },
        "became 2 messages",
    ),
    (
        "two answers for a key",
        |day| day.case(2).told.push(Told::Ids(vec![13])),
        "the key of order 2 gave",
    ),
    (
        "refused and stored",
        |day| {
            day.store(13, 3, 37_120_000_004, DELIVERED);
            day.settle_up();
        },
        "was refused and is stored",
    ),
    (
        "stored and asked for by nobody",
        |day| {
            day.store(18, 77, 37_120_000_004, DELIVERED);
            day.settle_up();
        },
        "nobody made the order",
    ),
    (
        "an order that breaks a rule is taken",
        |day| day.case(1).order.is_invalid = true,
        "was told",
    ),
    (
        "a stale owner has settled",
        |day| day.books.doubled.push(11),
        "two tries of 11",
    ),
    (
        "a broken index",
        |day| day.books.damage.push("index".to_owned()),
        "is damaged",
    ),
    (
        "whatever a caller found wrong",
        |day| day.pages.wrong.push("418".to_owned()),
        "418",
    ),
];

#[test]
fn each_breach_is_found() {
    for (case, spoil, expected) in BREACHES {
        let mut day = Day::new();
        spoil(&mut day);
        let breaches = day.check().breaches;
        assert!(
            breaches.iter().any(|breach| breach.contains(expected)),
            "{case}: {breaches:?}"
        );
    }
}

#[test]
fn what_a_fault_explains_is_no_breach() {
    let mut day = Day::new();
    day.pages.faults.push(Fault {
        from_ms: 1000,
        until_ms: 2000,
        most: 1,
    });
    let to = day.case(1).order.to[0].0;
    day.submit(1, to, 1500);
    let verdict = day.check();
    assert_eq!(verdict.breaches, Vec::<String>::new());
    assert_eq!(verdict.duplicates, 1);

    let mut day = Day::new();
    day.pages.reports.remove(&11);
    day.books.undelivered.insert(11);
    assert_eq!(day.check().breaches, Vec::<String>::new());
}

#[test]
fn a_commit_of_unknown_outcome_is_a_breach_only_where_it_is_not_expected() {
    let mut day = Day::new();
    let to = day.case(3).order.to[0].0;
    day.store(13, 3, to, DELIVERED);
    day.settle_up();
    let leave = Leave {
        unknown_commits: true,
    };
    assert_eq!(
        check(&day.pages, &day.books, leave).breaches,
        Vec::<String>::new()
    );
    assert_ne!(day.check().breaches, Vec::<String>::new());
}

#[test]
fn lateness_is_no_breach_where_the_machine_stood_still_and_is_measured() {
    let mut day = Day::new();
    day.send_late(LATEST_MS + 1000);
    // Half of the second stall is after the message was sent.
    day.stall(6000, 7000, 500);
    day.stall(8000, 10_000, 1000);
    let verdict = day.check();
    assert_eq!(verdict.breaches, Vec::<String>::new());
    assert_eq!(verdict.late, 0);
    let latest = Lateness {
        late_ms: 3000,
        stalled_ms: 1000,
    };
    assert_eq!(verdict.latest, Some(latest));
}
