//! Receipts that came to SMPP clients more than once.

use std::collections::HashSet;

use super::checker::{Tolerance, Verdict, find_cause};
use super::log::Observations;

/// Each receipt is acknowledged at once, so it comes again only if a fault hit the acknowledgement. Where the database
/// goes away, the acknowledgement may be lost with a commit.
pub(super) fn check(observed: &Observations, tolerance: Tolerance, verdict: &mut Verdict) {
    for (id, reports) in &observed.reports {
        let by_smpp = reports.iter().filter(|report| report.webhook_id.is_none());
        let mut times: Vec<u64> = by_smpp.map(|report| report.at_ms).collect();
        times.sort_unstable();
        for pair in times.windows(2) {
            verdict.repeated_receipts += 1;
            let cause = find_cause(&observed.faults, [pair[0], pair[1]], &HashSet::new());
            if cause.is_none() && !tolerance.unknown_commits {
                let violation = format!("the receipt of {id} came at {pair:?} without a cause");
                verdict.violations.push(violation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::{Fault, Report};
    use super::*;

    /// How often a receipt that came at these times was repeated, and how often without a cause.
    fn count(times: &[u64], faults: &[Fault], unknown_commits: bool) -> (usize, usize) {
        let report = |at_ms: &u64| Report {
            number: 1,
            webhook_id: None,
            final_state: (1, 0),
            received: true,
            at_ms: *at_ms,
        };
        let mut observed = Observations::default();
        observed
            .reports
            .insert(11, times.iter().map(report).collect());
        observed.faults = faults.to_vec();
        let mut verdict = Verdict::default();
        check(&observed, Tolerance { unknown_commits }, &mut verdict);
        (verdict.repeated_receipts, verdict.violations.len())
    }

    #[test]
    fn a_receipt_comes_again_only_after_a_fault() {
        let fault = Fault {
            from_ms: 5000,
            until_ms: 6000,
            max_duplicates: 0,
        };
        assert_eq!(count(&[4900], &[], false), (0, 0));
        assert_eq!(count(&[4900, 7000], &[], false), (1, 1));
        assert_eq!(count(&[4900, 7000], &[], true), (1, 0));
        assert_eq!(count(&[4900, 7000], &[fault], false), (1, 0));
        assert_eq!(count(&[4900, 7000, 9500], &[fault], false), (2, 0));
        assert_eq!(count(&[4900, 9000, 9500], &[fault], false), (2, 1));
        assert_eq!(count(&[1000, 2000], &[fault], false), (1, 1));
    }
}
