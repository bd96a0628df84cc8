//! What the callers ask for, and what must become of it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use domain::Clock;
use domain::clock::SystemClock;
use serde_json::{Value, json};

/// The end of a message, as reports and the status tell it: status and error.
pub(super) type End = (u64, u64);

/// The sender of everything; Viber messages need it to be approved.
pub(super) const SENDER: &str = "Faults";
const DELIVERED: End = (1, 0);
const FINE: &str = "+37120000001";
/// Taken by the network, and reported as failed.
const ABSENT: (&str, End) = ("+447700900043", (2, 43));
/// Not even taken by the network.
const NO_ROUTE: (&str, End) = ("+447700900020", (2, 20));
/// Three parts.
const LONG: usize = 400;
/// Takes lookups, which end as messages do: an answer is a delivery.
pub(super) const LOOKUPS: &str = "/hlr";
/// Takes senders, which only have to be there.
pub(super) const SENDERS: &str = "/senderId";
/// The nearest scheduled time, and how far behind it others lie.
const AHEAD: Duration = Duration::from_secs(1);
const SPREAD_MS: u64 = 1000;

/// An order that was made and is about to be sent.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// Every order has its own; it is the path of its reports.
    pub(super) number: u64,
    /// The operation that takes it.
    pub(super) path: &'static str,
    /// How the message to each recipient ends, in their order; nothing for an order that must be refused.
    pub(super) ends: Vec<End>,
    /// Whether its ends are to be reported.
    pub(super) reported: bool,
    /// Its reports must not come before this.
    pub(super) not_before: Option<Instant>,
}

impl Order {
    /// Makes the order of a number, with its body; reports go below `receiver`.
    pub(super) fn make(number: u64, receiver: &str) -> (Self, Value) {
        let mut order = Self {
            number,
            path: "/sms",
            ends: vec![DELIVERED],
            reported: true,
            not_before: None,
        };
        let mut body = json!({
            "to": FINE,
            "from": SENDER,
            "message": format!("number {number}"),
            "dlrUrl": format!("{receiver}/{number}"),
        });
        order.vary(&mut body);
        (order, body)
    }

    /// Seventeen kinds in turn.
    fn vary(&mut self, body: &mut Value) {
        match self.number % 17 {
            0 => self.remain_unreported(body),
            1 | 2 => self.schedule(body),
            3 => self.address(body, &[(FINE, DELIVERED), ABSENT, NO_ROUTE]),
            4 => self.address(body, &[(FINE, DELIVERED); 5]),
            5 => body["message"] = long_text(self.number).into(),
            6 => self.address(body, &[ABSENT]),
            7 => self.address(body, &[NO_ROUTE]),
            8 => self.pretend(body, "1", DELIVERED),
            9 => self.pretend(body, "2", ABSENT.1),
            10 => self.break_a_rule(body),
            11 => body["priority"] = "high".into(),
            12 => body["priority"] = "low".into(),
            13 => self.look_up(body, FINE, DELIVERED),
            14 => self.look_up(body, ABSENT.0, ABSENT.1),
            15 => self.be_viber(body),
            16 => self.register(body),
            _ => {}
        }
    }

    fn remain_unreported(&mut self, body: &mut Value) {
        self.reported = false;
        body.as_object_mut().expect("an object").remove("dlrUrl");
    }

    fn schedule(&mut self, body: &mut Value) {
        let ahead = AHEAD + Duration::from_millis(self.number * 7 % SPREAD_MS);
        // The instant first: it is then never later than the time that is asked for.
        self.not_before = Some(Instant::now() + ahead);
        let at = SystemClock.now() + jiff::SignedDuration::try_from(ahead).expect("seconds");
        body["scheduled"] = at.to_string().into();
    }

    fn address(&mut self, body: &mut Value, recipients: &[(&str, End)]) {
        let (to, ends): (Vec<_>, Vec<_>) = recipients.iter().copied().unzip();
        // A recipient that stands twice gets the message once.
        let distinct = |(place, number): (usize, &&str)| match *number {
            FINE => format!("+3712000{place:04}"),
            number => number.to_owned(),
        };
        body["to"] = to.iter().enumerate().map(distinct).collect();
        self.ends = ends;
    }

    fn pretend(&mut self, body: &mut Value, mode: &str, end: End) {
        body["testMode"] = mode.into();
        self.ends = vec![end];
    }

    fn be_viber(&mut self, body: &mut Value) {
        self.path = "/viber";
        body["im"] = json!({"action": {"url": "https://example.com/", "title": "Look"}});
    }

    fn register(&mut self, body: &mut Value) {
        self.path = SENDERS;
        self.reported = false;
        let name = format!("S-{}", self.number);
        *body = json!({"name": name, "type": "AlphaNumeric", "category": "Other", "categoryDescription": "a test"});
    }

    fn look_up(&mut self, body: &mut Value, number: &str, end: End) {
        self.path = LOOKUPS;
        self.ends = vec![end];
        let url = body["dlrUrl"].take();
        *body = json!({"msisdn": number, "callBackUrl": url});
    }

    /// Scheduled far ahead, so that it would be listed if it were stored all the same.
    fn break_a_rule(&mut self, body: &mut Value) {
        let later = SystemClock.now() + jiff::SignedDuration::from_hours(24 * 30);
        body["scheduled"] = later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        body["expireIn"] = 1.into();
        self.ends = Vec::new();
    }
}

fn long_text(number: u64) -> String {
    let mut text = format!("number {number} ");
    while text.len() < LONG {
        write!(text, "and on ").expect("a string takes everything");
    }
    text
}
