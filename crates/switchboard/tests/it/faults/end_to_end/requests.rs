//! The requests of the callers, and the final states that their messages must have.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use domain::Clock;
use engine::clock::SystemClock;
use serde_json::{Value, json};

/// Status and error of a message that has ended.
pub(super) type FinalState = (u64, u64);

/// The sender of all messages. It must be approved for Viber messages.
pub(super) const SENDER: &str = "Faults";
const DELIVERED: FinalState = (1, 0);
const DELIVERABLE: &str = "+37120000001";
/// Accepted by the network, and reported as failed.
const ABSENT: (&str, FinalState) = ("+447700900043", (2, 43));
/// Refused by the network.
const NO_ROUTE: (&str, FinalState) = ("+447700900020", (2, 20));
/// Length of a text of three parts.
const LONG_TEXT: usize = 400;
/// Lookups end like messages: an answer counts as a delivery.
pub(super) const LOOKUPS: &str = "/hlr";
/// Senders only have to be stored.
pub(super) const SENDERS: &str = "/senderId";
/// Scheduled messages are due after this delay, plus up to the spread.
const MIN_DELAY: Duration = Duration::from_secs(1);
const DELAY_SPREAD_MS: u64 = 1000;

/// A request that is about to be sent, and what must happen to it.
#[derive(Clone, Debug)]
pub(super) struct PlannedRequest {
    /// Unique; it is also the path of its reports.
    pub(super) number: u64,
    pub(super) path: &'static str,
    /// The final state of the message to each recipient, in order; empty if the request must be refused.
    pub(super) final_states: Vec<FinalState>,
    pub(super) reported: bool,
    /// Its reports must not come earlier.
    pub(super) not_before: Option<Instant>,
}

impl PlannedRequest {
    /// Makes the request with this number, and its body. Reports go to paths below `receiver`.
    pub(super) fn make(number: u64, receiver: &str) -> (Self, Value) {
        let mut request = Self {
            number,
            path: "/sms",
            final_states: vec![DELIVERED],
            reported: true,
            not_before: None,
        };
        let mut body = json!({
            "to": DELIVERABLE,
            "from": SENDER,
            "message": format!("number {number}"),
            "dlrUrl": format!("{receiver}/{number}"),
        });
        request.vary_by_number(&mut body);
        (request, body)
    }

    /// There are seventeen kinds of requests, in turn.
    fn vary_by_number(&mut self, body: &mut Value) {
        match self.number % 17 {
            0 => self.make_unreported(body),
            1 | 2 => self.schedule(body),
            3 => self.address(body, &[(DELIVERABLE, DELIVERED), ABSENT, NO_ROUTE]),
            4 => self.address(body, &[(DELIVERABLE, DELIVERED); 5]),
            5 => body["message"] = long_text(self.number).into(),
            6 => self.address(body, &[ABSENT]),
            7 => self.address(body, &[NO_ROUTE]),
            8 => self.emulate(body, "1", DELIVERED),
            9 => self.emulate(body, "2", ABSENT.1),
            10 => self.make_invalid(body),
            11 => body["priority"] = "high".into(),
            12 => body["priority"] = "low".into(),
            13 => self.make_lookup(body, DELIVERABLE, DELIVERED),
            14 => self.make_lookup(body, ABSENT.0, ABSENT.1),
            15 => self.make_viber(body),
            16 => self.make_sender(body),
            _ => {}
        }
    }

    fn make_unreported(&mut self, body: &mut Value) {
        self.reported = false;
        body.as_object_mut().expect("an object").remove("dlrUrl");
    }

    fn schedule(&mut self, body: &mut Value) {
        let delay = MIN_DELAY + Duration::from_millis(self.number * 7 % DELAY_SPREAD_MS);
        // The instant is taken first, so that it is never later than the scheduled time.
        self.not_before = Some(Instant::now() + delay);
        let at = SystemClock.now() + jiff::SignedDuration::try_from(delay).expect("seconds");
        body["scheduled"] = at.to_string().into();
    }

    fn address(&mut self, body: &mut Value, recipients: &[(&str, FinalState)]) {
        let (to, final_states): (Vec<_>, Vec<_>) = recipients.iter().copied().unzip();
        // A recipient that is listed twice gets the message once, so all must differ.
        let distinct = |(index, number): (usize, &&str)| match *number {
            DELIVERABLE => format!("+3712000{index:04}"),
            number => number.to_owned(),
        };
        body["to"] = to.iter().enumerate().map(distinct).collect();
        self.final_states = final_states;
    }

    fn emulate(&mut self, body: &mut Value, mode: &str, final_state: FinalState) {
        body["testMode"] = mode.into();
        self.final_states = vec![final_state];
    }

    fn make_viber(&mut self, body: &mut Value) {
        self.path = "/viber";
        body["im"] = json!({"action": {"url": "https://example.com/", "title": "Look"}});
    }

    fn make_sender(&mut self, body: &mut Value) {
        self.path = SENDERS;
        self.reported = false;
        let name = format!("S-{}", self.number);
        *body = json!({"name": name, "type": "AlphaNumeric", "category": "Other", "categoryDescription": "a test"});
    }

    fn make_lookup(&mut self, body: &mut Value, number: &str, final_state: FinalState) {
        self.path = LOOKUPS;
        self.final_states = vec![final_state];
        let url = body["dlrUrl"].take();
        *body = json!({"msisdn": number, "callBackUrl": url});
    }

    /// Scheduled far ahead, so that it would be listed if it were stored by mistake.
    fn make_invalid(&mut self, body: &mut Value) {
        let later = SystemClock.now() + jiff::SignedDuration::from_hours(24 * 30);
        body["scheduled"] = later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        body["expireIn"] = 1.into();
        self.final_states = Vec::new();
    }
}

fn long_text(number: u64) -> String {
    let mut text = format!("number {number} ");
    while text.len() < LONG_TEXT {
        write!(text, "and on ").expect("writing to a string succeeds");
    }
    text
}
