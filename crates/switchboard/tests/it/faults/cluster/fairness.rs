//! A carrier with a backlog of one account, beside another account and an idle carrier.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::smsc::{Act, Smsc};
use testkit::{Backend, StallControl};

use super::lone_node::{Account, LoneNode, verdict};
use super::scenario::Ran;
use crate::faults::subject::builder;
use crate::faults::waiting::wait_until;

/// The backlog of the first account, and how fast its carrier takes it.
const BACKLOG: usize = 3000;
const PER_SECOND: u64 = 50;
/// How many messages are under way to the carrier at once.
const WINDOW: usize = 50;
/// The other account's message leaves within this, apart from the time that the machine stood still.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);
/// Between two messages of the other account so many of the first leave: three seconds' worth.
const BETWEEN: usize = 150;
/// The first numbers of the backlog, of the other account by the same carrier, and of the idle carrier.
const FIRST: u64 = 37_120_001_000;
const OTHER: u64 = 37_120_005_000;
const IDLE: u64 = 37_250_000_000;

/// Each cycle a message of another account passes the backlog of the first, and one goes by the idle carrier. One cycle
/// is about three seconds.
pub(super) fn shared(cycles: usize) -> Ran {
    let control = StallControl::start();
    let mut breaches = Vec::new();
    for backend in Backend::ALL {
        breaches.extend(share(backend, cycles, &control));
    }
    let messages = Backend::ALL.len() * (BACKLOG + 2 * cycles);
    Ran::Through(cycles, verdict(messages, breaches))
}

fn share(backend: Backend, cycles: usize, control: &StallControl) -> Vec<String> {
    let (busy, idle) = (Network::start(), Network::start());
    let node = LoneNode::start(builder(backend).config(carriers(&busy, &idle)));
    let (first, other) = (node.account("first"), node.account("other"));
    let numbers: Vec<u64> = (FIRST..).take(BACKLOG).collect();
    first.send(&numbers, &json!({}));
    wait_for_taken(&busy, BETWEEN);
    let attempts = node.most_attempts();
    let mut breaches = Vec::new();
    for cycle in 0..cycles {
        let past_backlog = Passing {
            what: "of another account behind a backlog",
            number: OTHER + cycle as u64,
            network: &busy,
        };
        let by_idle = Passing {
            what: "by the idle carrier",
            number: IDLE + cycle as u64,
            network: &idle,
        };
        for passing in [past_backlog, by_idle] {
            breaches.extend(passing.check(&other, control));
        }
        let so_far = busy.taken().len();
        wait_for_taken(&busy, so_far + BETWEEN);
    }
    let attempts_now = node.most_attempts();
    if attempts_now > attempts {
        breaches.push(format!(
            "attempts of what waits grew from {attempts} to {attempts_now}"
        ));
    }
    breaches.extend(check_order(&busy));
    let named = breaches.iter();
    named
        .map(|breach| format!("{backend:?}: {breach}"))
        .collect()
}

/// A message that must not wait for the backlog.
struct Passing<'a> {
    what: &'static str,
    number: u64,
    network: &'a Network,
}

impl Passing<'_> {
    fn check(&self, account: &Account, control: &StallControl) -> Option<String> {
        let accepted = account.send(&[self.number], &json!({}));
        let mut left_at = accepted;
        wait_until("the message leaves", || {
            let taken = self.network.taken();
            let mut taken = taken.iter();
            let found = taken.find(|(number, _)| *number == self.number);
            left_at = found.map_or(left_at, |(_, at)| *at);
            found.is_some()
        });
        let took = left_at.saturating_duration_since(accepted);
        let running = control.running(accepted, left_at);
        println!(
            "a message {} left after {took:?} ({running:?} without stalls)",
            self.what
        );
        (running > LEAVES_WITHIN).then(|| format!("a message {} left after {took:?}", self.what))
    }
}

/// The backlog is of one account and one lane, so it leaves in its order, and nothing of it twice.
fn check_order(network: &Network) -> Option<String> {
    let taken = network.taken();
    let numbers = taken.iter().map(|(number, _)| *number);
    let numbers: Vec<u64> = numbers.filter(|number| *number < OTHER).collect();
    let wrong = numbers.windows(2).find(|pair| pair[0] >= pair[1])?;
    Some(format!("{} was sent after {}", wrong[1], wrong[0]))
}

fn wait_for_taken(network: &Network, count: usize) {
    wait_until("the carrier takes more", || network.taken().len() >= count);
}

type Taken = Vec<(u64, Instant)>;

/// An SMSC that notes who gets a message, and when.
struct Network {
    smsc: Smsc,
    taken: Arc<Mutex<Taken>>,
}

impl Network {
    fn start() -> Self {
        let taken: Arc<Mutex<Taken>> = Arc::default();
        let noted = taken.clone();
        let smsc = Smsc::builder().on_submit(move |submit| {
            let to = submit.destination.2.parse().unwrap_or(0);
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.push((to, submit.at));
            vec![Act::Answer]
        });
        Self {
            smsc: smsc.start(),
            taken,
        }
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn carriers(busy: &Network, idle: &Network) -> String {
    let carrier = |name: &str, network: &Network, more: &str| {
        format!(
            "[[carrier]]\nname = \"{name}\"\nkind = \"smpp\"\naddress = \"{}\"\nsystem_id = \"acme\"\npassword = \"s3cret\"\n\
             binds = 1\nwindow = {WINDOW}\nresponse_timeout_s = 60\n{more}\n",
            network.smsc.addr()
        )
    };
    carrier("busy", busy, &format!("max_per_second = {PER_SECOND}"))
        + &carrier("idle", idle, "")
        + "[[route]]\nprefix = \"371\"\ncarriers = [\"busy\"]\n[[route]]\ncarriers = [\"idle\"]\n"
}
