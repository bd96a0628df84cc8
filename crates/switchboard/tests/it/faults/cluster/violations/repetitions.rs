//! Repetitions that a fault explains are no violation.

use super::super::log::{Answer, Fault, Submit};
use super::super::requests::{PlannedRequest, REFUSED};
use super::CheckerInput;

#[test]
fn duplicates_that_a_fault_explains_are_no_violation() {
    let mut input = CheckerInput::new();
    input.observed.faults.push(Fault {
        from_ms: 1000,
        until_ms: 2000,
        max_duplicates: 1,
    });
    let to = input.record(1).request.to[0].0;
    input.submit(1, to, 1500);
    let verdict = input.check();
    assert_eq!(verdict.violations, Vec::<String>::new());
    assert_eq!(verdict.duplicates, 1);

    let mut input = CheckerInput::new();
    input.observed.reports.remove(&11);
    input.contents.undelivered_reports.insert(11);
    assert_eq!(input.check().violations, Vec::<String>::new());
}

/// The answer to the first attempt is lost, and the repetitions are refused.
#[test]
fn a_refused_repetition_leads_to_another_one() {
    let mut input = CheckerInput::new();
    let mut request = PlannedRequest::plain(7);
    request.to = vec![REFUSED];
    input.add(request, &[Answer::Ids(vec![17])]);
    input.update_funds();
    assert_eq!(input.check().violations, Vec::<String>::new());

    input.row(17).final_state = None;
    input.observed.status_checks.remove(&17);
    input.observed.reports.remove(&17);
    input.update_funds();
    assert_ne!(input.check().violations, Vec::<String>::new());
    for at_ms in [1500, 3000, 4500] {
        input.submit(7, REFUSED.0, at_ms);
    }
    let violations = input.check().violations;
    assert_eq!(violations.len(), 1, "the first repetition: {violations:?}");
    input.observed.faults.push(Fault {
        from_ms: 1000,
        until_ms: 2000,
        max_duplicates: 1,
    });
    assert_eq!(input.check().violations, Vec::<String>::new());

    // The first attempt did not even come.
    let came = |submit: &Submit| submit.number != 7 || submit.at_ms == 4500;
    input.observed.submits.retain(came);
    input.submit(7, REFUSED.0, 9000);
    assert_eq!(input.check().violations, Vec::<String>::new());
    input.record(7).began_ms = 4500;
    assert_eq!(input.check().violations.len(), 1);
}
