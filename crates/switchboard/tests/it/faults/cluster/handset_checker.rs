//! Compares what the network and the receiver know about texts from handsets with the database.

use std::collections::{BTreeMap, HashMap};

use super::checker::Verdict;
use super::contents::{DatabaseContents, InboundRow};
use super::handsets::{TextObservations, TextRecord, whole_text};
use super::requests::number_in;

/// Each acknowledged text is stored once, and once more at most for each copy without an acknowledgement; each stored one
/// is called back.
pub(super) fn check(
    observed: &TextObservations,
    contents: &DatabaseContents,
    verdict: &mut Verdict,
) {
    let mut stored: BTreeMap<u64, Vec<&InboundRow>> = BTreeMap::new();
    for row in &contents.inbound {
        let number = number_in(row.text.as_bytes()).unwrap_or(0);
        stored.entry(number).or_default().push(row);
    }
    verdict.messages += contents.inbound.len();
    for (number, record) in &observed.texts {
        let count = stored.get(number).map_or(0, Vec::len);
        check_count(*number, record, count, verdict);
    }
    for (number, rows) in &stored {
        let expected = observed.texts.get(number).map(|record| record.parts);
        let expected = expected.map(|parts| whole_text(*number, parts));
        let is_right = |row: &&&InboundRow| {
            Some(&row.text) == expected.as_ref() && row.account.is_some() && !row.is_incomplete
        };
        for wrong in rows.iter().filter(|row| !is_right(row)) {
            let wrong = format!("text {number} should be {expected:?} and is {wrong:?}");
            verdict.violations.push(wrong);
        }
    }
    check_callbacks(observed, contents, verdict);
}

fn check_count(number: u64, record: &TextRecord, count: usize, verdict: &mut Verdict) {
    if !record.is_acknowledged() {
        let violation = format!("text {number} was never acknowledged: {record:?}");
        verdict.violations.push(violation);
    } else if count == 0 {
        verdict.lost += 1;
        let violation = format!("text {number} was acknowledged and is lost");
        verdict.violations.push(violation);
    }
    verdict.duplicates += count.saturating_sub(1);
    if count > 1 + record.unacknowledged {
        let violation = format!("text {number} is stored {count} times: {record:?}");
        verdict.violations.push(violation);
    }
}

/// Each stored text was called back or its callback waits, and all callbacks of a text are equal.
fn check_callbacks(
    observed: &TextObservations,
    contents: &DatabaseContents,
    verdict: &mut Verdict,
) {
    let rows: HashMap<u64, &InboundRow> =
        contents.inbound.iter().map(|row| (row.id, row)).collect();
    for row in &contents.inbound {
        let callbacks = observed.callbacks.get(&row.id);
        let is_received = callbacks.is_some_and(|all| all.iter().any(|one| one.received));
        if !is_received && !contents.undelivered_reports.contains(&row.id) {
            let violation = format!("{row:?} is stored and its callback is nowhere");
            verdict.violations.push(violation);
        }
    }
    for (id, callbacks) in &observed.callbacks {
        let Some(row) = rows.get(id) else {
            let violation = format!("{id} was called back and does not exist: {callbacks:?}");
            verdict.violations.push(violation);
            continue;
        };
        let is_right = callbacks
            .iter()
            .all(|one| one.text == row.text && one.webhook_id == callbacks[0].webhook_id);
        if !is_right {
            let violation = format!("{row:?} was called back as {callbacks:?}");
            verdict.violations.push(violation);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::handsets::TextCallback;
    use super::*;

    const ACCOUNT: i64 = 1;

    /// Starts without a violation: text 1 has one part and 3 has two.
    struct CheckerInput {
        observed: TextObservations,
        contents: DatabaseContents,
    }

    impl CheckerInput {
        fn new() -> Self {
            let mut input = Self {
                observed: TextObservations::default(),
                contents: DatabaseContents::default(),
            };
            for (number, parts) in [(1, 1), (3, 2)] {
                let record = TextRecord {
                    parts,
                    acknowledged: (1..=parts).collect(),
                    unacknowledged: 0,
                };
                input.observed.texts.insert(number, record);
                input.store(10 + number, &whole_text(number, parts));
            }
            input
        }

        /// Stores a message with its callback.
        fn store(&mut self, id: u64, text: &str) {
            self.contents.inbound.push(InboundRow {
                id,
                text: text.to_owned(),
                account: Some(ACCOUNT),
                is_incomplete: false,
            });
            let callback = TextCallback {
                text: text.to_owned(),
                webhook_id: format!("c-{id}"),
                received: true,
            };
            self.observed.callbacks.insert(id, vec![callback]);
        }

        fn record(&mut self, number: u64) -> &mut TextRecord {
            self.observed.texts.get_mut(&number).expect("a text")
        }

        fn callbacks(&mut self, id: u64) -> &mut Vec<TextCallback> {
            self.observed.callbacks.get_mut(&id).expect("a callback")
        }

        fn check(&self) -> Verdict {
            let mut verdict = Verdict::default();
            check(&self.observed, &self.contents, &mut verdict);
            verdict
        }
    }

    /// The name, a change to a correct run, and what the checker must say.
    type Violation = (&'static str, fn(&mut CheckerInput), &'static str);

    const VIOLATIONS: &[Violation] = &[
        (
            "an acknowledged text is gone",
            |input| input.contents.inbound.retain(|row| row.id != 11),
            "is lost",
        ),
        (
            "an acknowledged text is stored twice",
            |input| input.store(20, &whole_text(1, 1)),
            "is stored 2 times",
        ),
        (
            "a part was never acknowledged",
            |input| input.record(3).acknowledged = BTreeSet::from([2]),
            "was never acknowledged",
        ),
        (
            "a part is missing",
            |input| input.contents.inbound[1].text.truncate(20),
            "and is InboundRow",
        ),
        (
            "a text is incomplete",
            |input| input.contents.inbound[1].is_incomplete = true,
            "and is InboundRow",
        ),
        (
            "a text has no owner",
            |input| input.contents.inbound[0].account = None,
            "and is InboundRow",
        ),
        (
            "nobody sent a text",
            |input| input.store(20, "Hello"),
            "text 0 should be None",
        ),
        (
            "a callback is missing",
            |input| drop(input.observed.callbacks.remove(&11)),
            "callback is nowhere",
        ),
        (
            "a callback was never received",
            |input| input.callbacks(11)[0].received = false,
            "callback is nowhere",
        ),
        (
            "a callback about another text",
            |input| input.callbacks(11)[0].text = "#3#".to_owned(),
            "was called back as",
        ),
        (
            "two different callbacks about one text",
            |input| {
                let other = TextCallback {
                    webhook_id: "other".to_owned(),
                    ..input.callbacks(11)[0].clone()
                };
                input.callbacks(11).push(other);
            },
            "was called back as",
        ),
        (
            "a callback about an unknown text",
            |input| {
                let callbacks = input.callbacks(11).clone();
                input.observed.callbacks.insert(99, callbacks);
            },
            "does not exist",
        ),
    ];

    #[test]
    fn each_violation_is_found() {
        let verdict = CheckerInput::new().check();
        assert_eq!(verdict.violations, Vec::<String>::new());
        assert_eq!((verdict.messages, verdict.duplicates), (2, 0));
        for (name, corrupt, expected) in VIOLATIONS {
            let mut input = CheckerInput::new();
            corrupt(&mut input);
            let violations = input.check().violations;
            let is_found = violations.iter().any(|one| one.contains(expected));
            assert!(is_found, "{name}: {violations:?}");
        }
    }

    #[test]
    fn a_copy_without_an_acknowledgement_may_be_stored_and_a_callback_may_wait() {
        let mut input = CheckerInput::new();
        input.record(1).unacknowledged = 1;
        input.store(20, &whole_text(1, 1));
        input.observed.callbacks.remove(&20);
        input.contents.undelivered_reports.insert(20);
        let verdict = input.check();
        assert_eq!(verdict.violations, Vec::<String>::new());
        assert_eq!((verdict.lost, verdict.duplicates), (0, 1));
    }
}
