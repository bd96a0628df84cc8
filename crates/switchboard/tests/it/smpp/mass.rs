//! Many messages at once, and what came of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use testkit::PATIENCE;
use testkit::receiver::Receiver;

use crate::rest::service::Service;

/// What a request may have at most.
const BATCH: usize = 1000;

/// Recipients in Latvia, each with a number of its own.
pub(super) fn recipients(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| format!("+371{}", 20_000_000 + n))
        .collect()
}

/// Status and error of each report on a message, in their order.
type Ends = HashMap<String, Vec<(u64, u64)>>;

/// Counts the reports on many messages.
pub(super) struct Tally {
    receiver: Receiver,
    ends: Arc<Mutex<Ends>>,
}

impl Tally {
    pub(super) fn start() -> Self {
        let ends: Arc<Mutex<Ends>> = Arc::default();
        let noted = ends.clone();
        let receiver = Receiver::builder().on_request(move |_, body| {
            let report: Value = serde_json::from_slice(body).expect("a report");
            let number = |name: &str| report[name].as_u64().expect("a number");
            let id = report["id"].as_str().expect("an ID").to_owned();
            let mut ends = noted.lock().unwrap_or_else(PoisonError::into_inner);
            ends.entry(id)
                .or_default()
                .push((number("status"), number("error")));
        });
        Self {
            receiver: receiver.start(),
            ends,
        }
    }

    /// Waits until so many messages are reported.
    pub(super) fn wait_for(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        // A report that came again counts as a request, not as a message.
        let mut requests = count;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let came = self.receiver.wait_for(requests, left);
            let reported = self.ends().len();
            assert!(came, "{reported} of {count} are reported");
            if reported >= count {
                return;
            }
            requests = self.receiver.count() + 1;
        }
    }

    /// Every one of these is reported, no other is, and each report says that it arrived.
    pub(super) fn check(&self, ids: &[String]) {
        self.wait_for(ids.len());
        let ends = self.ends();
        let missing = ids.iter().filter(|id| !ends.contains_key(*id)).count();
        assert_eq!((missing, ends.len()), (0, ids.len()), "missing, and in all");
        let is_wrong = |ends: &[(u64, u64)]| ends.iter().any(|end| *end != (1, 0));
        let wrong: Vec<_> = ends.iter().filter(|(_, ends)| is_wrong(ends)).collect();
        assert!(wrong.is_empty(), "{} are wrong: {wrong:?}", wrong.len());
    }

    /// [`Self::check`], and no report comes twice: one more is sent, and whatever else were to be reported would come
    /// before it.
    pub(super) fn check_once(&self, service: &Service, mut ids: Vec<String>) {
        self.check(&ids);
        ids.extend(send_all(service, self, "Hello", &recipients(1)));
        self.check(&ids);
        assert_eq!(self.receiver.count(), ids.len(), "some came twice");
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the service's first account, whose money is for a few messages, a rich one as successor.
pub(super) fn enrich(service: &mut Service) {
    let create = [
        "account",
        "create",
        "--name",
        "mass",
        "--balance",
        "1000000",
        "--json",
    ];
    service.server.cli_json(&create);
    service.token = service.create_token("mass", &[]).token;
}

/// Sends a text to all of these in as few requests as it takes, and returns the IDs.
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
    recipients.chunks(BATCH).flat_map(send).collect()
}
