//! Sends many messages at once and counts their reports.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use testkit::TEST_TIMEOUT;
use testkit::receiver::Receiver;

use crate::rest::service::Service;

/// Maximum number of recipients of a request.
const MAX_RECIPIENTS: usize = 1000;

/// Distinct recipients in Latvia.
pub(super) fn recipients(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| format!("+371{}", 20_000_000 + n))
        .collect()
}

/// Status and error of each report, by message ID.
type Reports = HashMap<String, Vec<(u64, u64)>>;

/// Counts the reports on many messages.
pub(super) struct Tally {
    receiver: Receiver,
    reports: Arc<Mutex<Reports>>,
}

impl Tally {
    pub(super) fn start() -> Self {
        let reports: Arc<Mutex<Reports>> = Arc::default();
        let recorded = reports.clone();
        let receiver = Receiver::builder().on_request(move |_, body| {
            let report: Value = serde_json::from_slice(body).expect("a report");
            let number = |name: &str| report[name].as_u64().expect("a number");
            let id = report["id"].as_str().expect("an ID").to_owned();
            let mut reports = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            reports
                .entry(id)
                .or_default()
                .push((number("status"), number("error")));
        });
        Self {
            receiver: receiver.start(),
            reports,
        }
    }

    /// Waits until this many messages are reported.
    pub(super) fn wait_for(&self, count: usize) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        // A repeated report is another request, but not another message.
        let mut requests = count;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let all_came = self.receiver.wait_for(requests, left);
            let reported = self.reports().len();
            assert!(all_came, "{reported} of {count} are reported");
            if reported >= count {
                return;
            }
            requests = self.receiver.count() + 1;
        }
    }

    /// Checks that exactly these messages are reported, all of them as delivered.
    pub(super) fn check(&self, ids: &[String]) {
        self.wait_for(ids.len());
        let reports = self.reports();
        let missing = ids.iter().filter(|id| !reports.contains_key(*id)).count();
        assert_eq!(
            (missing, reports.len()),
            (0, ids.len()),
            "missing and total"
        );
        let is_wrong =
            |reports: &[(u64, u64)]| reports.iter().any(|final_state| *final_state != (1, 0));
        let wrong: Vec<_> = reports
            .iter()
            .filter(|(_, reports)| is_wrong(reports))
            .collect();
        assert!(
            wrong.is_empty(),
            "{} reports are wrong: {wrong:?}",
            wrong.len()
        );
    }

    /// [`Self::check`], and no report comes twice. A repeated report would come before that of one more message.
    pub(super) fn check_once(&self, service: &Service, mut ids: Vec<String>) {
        self.check(&ids);
        ids.extend(send_all(service, self, "Hello", &recipients(1)));
        self.check(&ids);
        assert_eq!(self.receiver.count(), ids.len(), "some reports came twice");
    }

    fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces the first account, whose balance only suffices for a few messages, by one with a large balance.
pub(super) fn use_funded_account(service: &mut Service) {
    let create = [
        "account",
        "create",
        "--name",
        "bulk",
        "--balance",
        "1000000",
        "--json",
    ];
    service.server.cli_json(&create);
    service.token = service.create_token("bulk", &[]).token;
}

/// Sends a text to all recipients in as few requests as possible, and returns the IDs.
pub(super) fn send_all(
    service: &Service,
    tally: &Tally,
    text: &str,
    recipients: &[String],
) -> Vec<String> {
    let url = tally.receiver.url("/dlr");
    let send = |to: &[String]| {
        service.accept(&json!({"to": to, "from": "Acme", "message": text, "dlrUrl": url}))
    };
    recipients.chunks(MAX_RECIPIENTS).flat_map(send).collect()
}
