//! Simulates messages from acceptance to delivery report, with random faults and a simulated clock.
//!
//! Three nodes run the real engine in one thread, on a clock that jumps to the next event. They use a store in memory
//! that behaves as the ports specify ([`memory_store`]), simulated networks and a receiver. A seed decides when a call is
//! slow, is refused, loses its answer or is executed late; when a task panics; when a node dies, pauses or restarts;
//! and when the store, a network or the receiver is down. When the faults have stopped and all queues are empty, the
//! [`checker`] examines what is left. A seed always gives the same run, so a failure can be replayed:
//!
//! ```text
//! SIMULATION_SEED=17 cargo test -p engine simulation -- --nocapture    replays one, event by event
//! SIMULATION_SEEDS=10000 cargo test -p engine --release simulation -- --nocapture    runs many, and prints the rate
//! ```

mod checker;
mod environment;
mod faulty_store;
mod liveness;
mod network;
mod node;
mod rng;
mod unused;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::message::text::{Coding, Shape};
use domain::message::{IdempotencyClaim, Priority, SendTime};
use domain::{AccountId, CallbackUrl, Channel, Money, Msisdn, Originator, Timestamp};
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::sending::submit::Checked;
use checker::{SentRequest, check};
use environment::{Environment, FaultRates};
use network::Sinks;
use node::Slot;

/// How many seeds are run by default.
const SEEDS: u64 = 150;
const NODES: usize = 3;
/// How long requests arrive and faults happen.
const LOAD_DURATION: Duration = Duration::from_secs(40);
/// After this time, the last node is back and has renewed its heartbeat, and the store has executed its late calls.
const RECOVERY: Duration = Duration::from_mins(1);
/// How many requests are made after the faults have stopped.
const LAST_REQUESTS: u64 = 3;
/// A recipient that opted out.
const OPTED_OUT: &str = "+37120000002";
/// How many of a thousand requests are to that recipient.
const OPTED_OUT_PER_MILLE: u64 = 100;
/// All queues must be empty after this time.
const DRAIN_TIMEOUT: Duration = Duration::from_hours(3);

/// A finished run.
struct Run {
    env: Arc<Environment>,
    requests: Vec<SentRequest>,
    healed_at: Timestamp,
}

impl Run {
    fn simulate(seed: u64, is_traced: bool) -> Self {
        crate::entropy::repeat(seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(run(seed, is_traced))
    }

    fn breaches(&self) -> Vec<String> {
        check(&self.env.state(), &self.requests, self.healed_at)
    }
}

async fn run(seed: u64, is_traced: bool) -> Run {
    let env = Environment::new(seed, is_traced);
    let sinks = Arc::new(Sinks::default());
    let slots: [Arc<Slot>; NODES] = Default::default();
    for slot in &slots {
        tokio::spawn(slot.clone().run(env.clone(), sinks.clone()));
    }
    let requests = Arc::new(Mutex::new(Vec::new()));
    // Every fourth seed sends far more than the nodes have capacity for.
    let load_factor = [1, 1, 1, 6][usize::try_from(seed % 4).expect("small")];
    let count = 5 + env.state().rng.below(35 * load_factor);
    let mut callers = Vec::new();
    for number in 0..count {
        let after = env.pause(0, 40_000);
        let caller = send_request(env.clone(), slots.clone(), requests.clone(), number, after);
        callers.push(tokio::spawn(caller));
    }
    inject_faults(&env, &slots).await;
    tokio::time::sleep(RECOVERY).await;
    let healed_at = env.now();
    for number in count..count + LAST_REQUESTS {
        let after = env.pause(0, 3_000);
        let caller = send_request(env.clone(), slots.clone(), requests.clone(), number, after);
        callers.push(tokio::spawn(caller));
    }
    // A caller without an answer by then never gets one.
    tokio::time::timeout(DRAIN_TIMEOUT, join_all(callers))
        .await
        .ok();
    wait_until_idle(&env).await;
    let requests = requests.lock().expect("no holder panics").clone();
    Run {
        env,
        requests,
        healed_at,
    }
}

async fn join_all(callers: Vec<tokio::task::JoinHandle<()>>) {
    for caller in callers {
        caller.await.expect("no caller panics");
    }
}

/// Injects random faults for [`LOAD_DURATION`], then stops them all.
async fn inject_faults(env: &Arc<Environment>, slots: &[Arc<Slot>; NODES]) {
    let end = Instant::now() + LOAD_DURATION;
    loop {
        tokio::time::sleep(env.pause(500, 12_000)).await;
        if Instant::now() >= end {
            break;
        }
        let (kind, index, time) = {
            let rng = &mut env.state().rng;
            let index = usize::try_from(rng.below(NODES as u64)).expect("small");
            (rng.below(8), index, rng.between(100, 25_000))
        };
        let until = (Instant::now() + time).min(end);
        match kind {
            0 | 1 => {
                env.log(format_args!("slot {index} is killed"));
                slots[index].kill();
            }
            2 => {
                env.log(format_args!("slot {index} pauses for {time:?}"));
                slots[index].pause_for(time);
            }
            3 => {
                env.log(format_args!("the store is down for {time:?}"));
                env.state().store_down_until = until;
            }
            4 => env.state().network_down_until = [until; 2],
            5 => env.state().network_down_until[0] = until,
            6 => {
                env.log("the store reserves the same IDs again");
                env.state().model.forget_ids(20_000);
            }
            _ => env.state().receiver_down_until = until,
        }
    }
    env.log("the faults have stopped");
    env.state().fault_rates = FaultRates::NONE;
}

/// Waits until all queues are empty.
async fn wait_until_idle(env: &Environment) {
    let end = Instant::now() + DRAIN_TIMEOUT;
    while Instant::now() < end {
        let is_done = {
            let model = &env.state().model;
            model.queue.is_empty() && model.report_queue.is_empty()
        };
        if is_done {
            // Late calls may still add to the queues.
            tokio::time::sleep(RECOVERY).await;
            let model = &env.state().model;
            if model.queue.is_empty() && model.report_queue.is_empty() {
                return;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Sends one request. With an idempotency key it is repeated until it is answered; without one, that is not safe.
async fn send_request(
    env: Arc<Environment>,
    slots: [Arc<Slot>; NODES],
    requests: Arc<Mutex<Vec<SentRequest>>>,
    number: u64,
    after: Duration,
) {
    tokio::time::sleep(after).await;
    let request = random_request(&env, number);
    let key = request.idempotency.map(|claim| claim.key);
    loop {
        let index = env.state().rng.below(NODES as u64);
        let slot = &slots[usize::try_from(index).expect("small")];
        let mut request = request.clone();
        request.checked.accepted_at = env.now();
        let answer = slot.submit(request).await;
        env.log(format_args!("request {number}: {answer:?}"));
        if answer.is_some() || key.is_none() {
            let sent = SentRequest { answer, key };
            return requests.lock().expect("no holder panics").push(sent);
        }
        tokio::time::sleep(env.pause(200, 2_000)).await;
    }
}

#[derive(Clone)]
struct Request {
    checked: Checked,
    price: Money,
    idempotency: Option<IdempotencyClaim>,
}

fn random_request(env: &Environment, number: u64) -> Request {
    let now = env.now();
    let mut state = env.state();
    let rng = &mut state.rng;
    let later = SignedDuration::try_from(rng.between(2_000, 30_000)).expect("small");
    let send = if rng.per_mille(400) {
        SendTime::At(now + later)
    } else {
        SendTime::Now
    };
    let idempotency = rng.per_mille(500).then(|| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        IdempotencyClaim {
            key,
            body: key,
            expires_at: now + SignedDuration::from_hours(24),
        }
    });
    let url = rng
        .per_mille(700)
        .then(|| CallbackUrl::parse("https://example.com/reports").expect("an address"));
    let parts = 1 + u8::try_from(rng.below(3)).expect("small");
    let priority = Priority::ALL[usize::try_from(rng.below(3)).expect("small")];
    let account = AccountId::new(1 + rng.below(3)).expect("not zero");
    let to = if rng.per_mille(OPTED_OUT_PER_MILLE) {
        OPTED_OUT
    } else {
        "+37120000001"
    };
    let checked = Checked {
        account,
        channel: Channel::Sms,
        recipients: vec![Msisdn::parse(to).expect("a number")],
        from: Some(Originator::parse("Shop").expect("a name")),
        text: "Hello".to_owned(),
        carries_code: false,
        notice: false,
        interactive: None,
        shape: Shape {
            coding: Coding::Gsm7,
            parts,
        },
        udh: None,
        coding_given: false,
        dlr_url: url,
        priority,
        send,
        accepted_at: now,
        expires_at: now + SignedDuration::from_mins(4),
        test_mode: None,
        charged_parts: parts,
        trace: None,
    };
    Request {
        checked,
        price: Money::from_micros(1_000 + i64::try_from(number).expect("small")),
        idempotency,
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_message_is_lost_or_duplicated_with_random_faults() {
    if let Some(seed) = setting("SIMULATION_SEED") {
        let run = Run::simulate(seed, true);
        for event in run.env.trace() {
            println!("{event}");
        }
        let breaches = run.breaches();
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
        return;
    }
    let seeds = setting("SIMULATION_SEEDS").unwrap_or(SEEDS);
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let failed = Mutex::new(Vec::new());
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let failed = &failed;
            scope.spawn(move || {
                for seed in (worker..seeds).step_by(usize::try_from(workers).expect("few")) {
                    let breaches = Run::simulate(seed, false).breaches();
                    if !breaches.is_empty() {
                        let mut failed = failed.lock().expect("no holder panics");
                        failed.push((seed, breaches.join("\n  ")));
                    }
                }
            });
        }
    });
    let took_ms = began.elapsed().as_millis().max(1);
    let per_minute = u128::from(seeds) * 60_000 / took_ms;
    println!("{seeds} seeds, {per_minute} a minute");
    let mut failed = failed.into_inner().expect("no holder panicked");
    failed.sort();
    let details: Vec<String> = failed
        .iter()
        .take(10)
        .map(|(seed, breaches)| format!("SIMULATION_SEED={seed}\n  {breaches}"))
        .collect();
    let count = failed.len();
    assert!(
        count == 0,
        "{count} of {seeds} seeds failed:\n{}",
        details.join("\n")
    );
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in 0..5 {
        let first = Run::simulate(seed, false).env.fingerprint();
        assert_eq!(
            Run::simulate(seed, false).env.fingerprint(),
            first,
            "{seed}"
        );
        assert_ne!(Run::simulate(seed + 100, false).env.fingerprint(), first);
    }
}
