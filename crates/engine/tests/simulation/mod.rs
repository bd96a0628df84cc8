//! The way of a message, from acceptance to report, with chance and time in our hands.
//!
//! Three nodes run the real engine in one thread, on a clock that jumps to the next event. Around them stand a store in
//! memory that keeps the promises of the ports ([`model`]), a network and a receiver. A seed decides when a call is slow,
//! refused, done without an answer or done only later, when a task panics, when a node dies, stops for a while or comes back, when the store,
//! the network or the receiver is away. When all is well again and everything has come to rest, the [`checker`] looks at
//! what is left. A seed gives the same run every time, so what failed once can be looked at:
//!
//! ```text
//! SIMULATION_SEED=17 cargo test -p engine simulation -- --nocapture    replays one, event by event
//! SIMULATION_SEEDS=10000 cargo test -p engine --release simulation -- --nocapture    runs many, and says how fast
//! ```

mod binds;
mod checker;
mod claims;
mod dice;
mod door;
mod life;
mod model;
mod node;
mod outside;
mod reports;
mod unused;
mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::message::text::{Coding, Shape};
use domain::message::{IdempotencyClaim, Priority, SendTime};
use domain::{AccountId, CallbackUrl, Channel, Money, Msisdn, Originator, Timestamp};
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::sending::submit::Checked;
use checker::{Order, check};
use node::Slot;
use outside::Sinks;
use world::{Troubles, World};

/// How many seeds are tried when nobody says otherwise.
const SEEDS: u64 = 150;
const NODES: usize = 3;
/// For so long orders come in and things go wrong.
const LOAD: Duration = Duration::from_secs(40);
/// After so long the last node is back and sure of itself, and what the store does late is done.
const RECOVERY: Duration = Duration::from_mins(1);
/// Orders that are scheduled once all is well.
const LAST_ORDERS: u64 = 3;
/// By then everything must have come to rest.
const REST: Duration = Duration::from_hours(3);

/// A run, when it has come to rest.
struct Run {
    world: Arc<World>,
    orders: Vec<Order>,
    healed_at: Timestamp,
}

impl Run {
    fn of(seed: u64, is_traced: bool) -> Self {
        crate::entropy::repeat(seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(run(seed, is_traced))
    }

    fn breaches(&self) -> Vec<String> {
        check(&self.world.state(), &self.orders, self.healed_at)
    }
}

async fn run(seed: u64, is_traced: bool) -> Run {
    let world = World::new(seed, is_traced);
    let sinks = Arc::new(Sinks::default());
    let slots: [Arc<Slot>; NODES] = Default::default();
    for slot in &slots {
        tokio::spawn(slot.clone().keep(world.clone(), sinks.clone()));
    }
    let orders = Arc::new(Mutex::new(Vec::new()));
    // Now and then far more than the nodes have room for.
    let many = [1, 1, 1, 6][usize::try_from(seed % 4).expect("small")];
    let count = 5 + world.state().dice.below(35 * many);
    let mut callers = Vec::new();
    for number in 0..count {
        let after = world.pause(0, 40_000);
        let caller = order(world.clone(), slots.clone(), orders.clone(), number, after);
        callers.push(tokio::spawn(caller));
    }
    trouble(&world, &slots).await;
    tokio::time::sleep(RECOVERY).await;
    let healed_at = world.now();
    for number in count..count + LAST_ORDERS {
        let after = world.pause(0, 3_000);
        let caller = order(world.clone(), slots.clone(), orders.clone(), number, after);
        callers.push(tokio::spawn(caller));
    }
    // Whoever has no answer by then never gets one.
    tokio::time::timeout(REST, all(callers)).await.ok();
    rest(&world).await;
    let orders = orders.lock().expect("no holder panics").clone();
    Run {
        world,
        orders,
        healed_at,
    }
}

async fn all(callers: Vec<tokio::task::JoinHandle<()>>) {
    for caller in callers {
        caller.await.expect("no caller panics");
    }
}

/// Lets things go wrong for a while, then heals all.
async fn trouble(world: &Arc<World>, slots: &[Arc<Slot>; NODES]) {
    let end = Instant::now() + LOAD;
    loop {
        tokio::time::sleep(world.pause(500, 12_000)).await;
        if Instant::now() >= end {
            break;
        }
        let (kind, place, time) = {
            let dice = &mut world.state().dice;
            let place = usize::try_from(dice.below(NODES as u64)).expect("small");
            (dice.below(8), place, dice.between(100, 25_000))
        };
        let until = (Instant::now() + time).min(end);
        match kind {
            0 | 1 => {
                world.note(format_args!("slot {place} is killed"));
                slots[place].kill();
            }
            2 => {
                world.note(format_args!("slot {place} stops for {time:?}"));
                slots[place].stop_for(time);
            }
            3 => {
                world.note(format_args!("the store is away for {time:?}"));
                world.state().store_away_until = until;
            }
            4 => world.state().network_down_until = [until; 2],
            5 => world.state().network_down_until[0] = until,
            6 => {
                world.note("the store hands out IDs again");
                world.state().model.forget_ids(20_000);
            }
            _ => world.state().receiver_down_until = until,
        }
    }
    world.note("all is well");
    world.state().troubles = Troubles::NONE;
}

/// Waits until nothing is left to do.
async fn rest(world: &World) {
    let end = Instant::now() + REST;
    while Instant::now() < end {
        let is_done = {
            let model = &world.state().model;
            model.queue.is_empty() && model.report_queue.is_empty()
        };
        if is_done {
            // What was done late is done by now, and had nothing left to do.
            tokio::time::sleep(RECOVERY).await;
            let model = &world.state().model;
            if model.queue.is_empty() && model.report_queue.is_empty() {
                return;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// One order: with a key it is repeated until it is answered, without one a caller cannot do that.
async fn order(
    world: Arc<World>,
    slots: [Arc<Slot>; NODES],
    orders: Arc<Mutex<Vec<Order>>>,
    number: u64,
    after: Duration,
) {
    tokio::time::sleep(after).await;
    let request = request(&world, number);
    let key = request.idempotency.map(|claim| claim.key);
    loop {
        let place = world.state().dice.below(NODES as u64);
        let slot = &slots[usize::try_from(place).expect("small")];
        let mut request = request.clone();
        request.checked.accepted_at = world.now();
        let answer = slot.submit(request).await;
        world.note(format_args!("order {number}: {answer:?}"));
        if answer.is_some() || key.is_none() {
            let order = Order { answer, key };
            return orders.lock().expect("no holder panics").push(order);
        }
        tokio::time::sleep(world.pause(200, 2_000)).await;
    }
}

/// What a caller asks for.
#[derive(Clone)]
struct Request {
    checked: Checked,
    price: Money,
    idempotency: Option<IdempotencyClaim>,
}

fn request(world: &World, number: u64) -> Request {
    let now = world.now();
    let mut state = world.state();
    let dice = &mut state.dice;
    let later = SignedDuration::try_from(dice.between(2_000, 30_000)).expect("small");
    let send = if dice.per_mille(400) {
        SendTime::At(now + later)
    } else {
        SendTime::Now
    };
    let idempotency = dice.per_mille(500).then(|| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        IdempotencyClaim {
            key,
            body: key,
            expires_at: now + SignedDuration::from_hours(24),
        }
    });
    let url = dice
        .per_mille(700)
        .then(|| CallbackUrl::parse("https://example.com/reports").expect("an address"));
    let parts = 1 + u8::try_from(dice.below(3)).expect("small");
    let priority = Priority::ALL[usize::try_from(dice.below(3)).expect("small")];
    let account = AccountId::new(1 + dice.below(3)).expect("not zero");
    let checked = Checked {
        account,
        channel: Channel::Sms,
        recipients: vec![Msisdn::parse("+37120000001").expect("a number")],
        from: Some(Originator::parse("Shop").expect("a name")),
        text: "Hello".to_owned(),
        carries_code: false,
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
fn messages_survive_whatever_a_seed_brings() {
    if let Some(seed) = setting("SIMULATION_SEED") {
        let run = Run::of(seed, true);
        for event in run.world.trace() {
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
                    let breaches = Run::of(seed, false).breaches();
                    if !breaches.is_empty() {
                        let mut failed = failed.lock().expect("no holder panics");
                        failed.push((seed, breaches.join("\n  ")));
                    }
                }
            });
        }
    });
    let took_ms = began.elapsed().as_millis().max(1);
    let a_minute = u128::from(seeds) * 60_000 / took_ms;
    println!("{seeds} seeds, {a_minute} a minute");
    let mut failed = failed.into_inner().expect("no holder panicked");
    failed.sort();
    let told: Vec<String> = failed
        .iter()
        .take(10)
        .map(|(seed, breaches)| format!("SIMULATION_SEED={seed}\n  {breaches}"))
        .collect();
    let count = failed.len();
    assert!(
        count == 0,
        "{count} of {seeds} seeds failed:\n{}",
        told.join("\n")
    );
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in 0..5 {
        let first = Run::of(seed, false).world.fingerprint();
        assert_eq!(Run::of(seed, false).world.fingerprint(), first, "{seed}");
        assert_ne!(Run::of(seed + 100, false).world.fingerprint(), first);
    }
}
