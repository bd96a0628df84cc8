//! Reads at an interval what waits, and how the database and the machine do, and sets the gauges.
//!
//! Nothing is read when somebody asks for the metrics. Each read takes a bounded time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::billing::day_of;
use domain::ports::{
    AccountBalance, DatabaseHealth, Machine, MachineState, Queue, QueueDepth, Receiver, Store,
    StoreError,
};
use domain::{AccountId, Clock, Money, Timestamp};
use metrics::gauge;

use super::hosts::{HostBacklog, HostPlaces};
use crate::clock::SystemClock;

const READ_EVERY: Duration = Duration::from_secs(10);
/// How many balances are read at a time.
const ACCOUNTS: u32 = 500;
/// How many accounts have metrics of their own.
const MOST_ACCOUNTS: usize = 2_000;
/// Shown for an account that spends nothing.
const MOST_DAYS: f64 = 3_650.0;

const SECONDS_IN_A_DAY: i64 = 24 * 3600;
/// In the first hour of a day, the rate is computed as if the hour were over.
const SHORTEST_SECONDS: i64 = 3600;

/// Sets the gauges of a worker.
pub(crate) struct Gauges {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) machine: Arc<dyn Machine>,
    /// Whether accounts have metrics of their own.
    pub(crate) by_account: bool,
}

/// What is remembered from one reading to the next.
#[derive(Default)]
struct Progress {
    hosts: HostPlaces,
    after: Option<AccountId>,
    accounts: usize,
    failed: bool,
}

impl Gauges {
    pub(crate) async fn run(self: Arc<Self>) {
        let mut progress = Progress::default();
        let mut tick = tokio::time::interval(READ_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.set_machine().await;
            let read = self.set_all(&mut progress).await;
            if let (Err(error), false) = (&read, progress.failed) {
                tracing::warn!(%error, "metrics of the database cannot be read; trying again");
            }
            progress.failed = read.is_err();
        }
    }

    async fn set_all(&self, progress: &mut Progress) -> Result<(), StoreError> {
        let now = self.clock.now();
        for waiting in self.store.list_waiting().await? {
            let lane = waiting.priority.name();
            gauge!("switchboard_messages_waiting", "lane" => lane).set(waiting.count);
            gauge!("switchboard_messages_oldest_seconds", "lane" => lane)
                .set(age(now, waiting.oldest_due_at));
        }
        for pooled in self.store.list_pooled().await? {
            let carrier = pooled.carrier;
            gauge!("switchboard_carrier_pooled", "carrier" => carrier.clone()).set(pooled.count);
            gauge!("switchboard_carrier_pooled_oldest_seconds", "carrier" => carrier)
                .set(age(now, pooled.oldest_due_at));
        }
        let receivers = self.store.list_receivers(None).await?;
        set_callbacks(now, &self.store.list_queues().await?, &receivers);
        set_hosts(now, receivers, &mut progress.hosts);
        set_database(self.store.database_health().await?);
        if self.by_account {
            self.set_accounts(now, progress).await?;
        }
        Ok(())
    }

    /// Sets the gauges of the next accounts.
    async fn set_accounts(
        &self,
        now: Timestamp,
        progress: &mut Progress,
    ) -> Result<(), StoreError> {
        let accounts = self.store.list_balances(progress.after, ACCOUNTS).await?;
        progress.after = accounts.last().map(|account| account.id);
        progress.accounts += accounts.len();
        if accounts.len() < ACCOUNTS as usize || progress.accounts >= MOST_ACCOUNTS {
            (progress.after, progress.accounts) = (None, 0);
        }
        for account in accounts {
            let (balance, days) = (
                float(account.balance.micros()) / 1e6,
                days_left(now, &account),
            );
            let name = account.name;
            gauge!("switchboard_account_balance_units", "account" => name.clone()).set(balance);
            gauge!("switchboard_account_left_days", "account" => name).set(days);
        }
        Ok(())
    }

    async fn set_machine(&self) {
        let (machine, now) = (self.machine.clone(), self.clock.now());
        let difference = SystemClock.now().duration_since(now);
        gauge!("switchboard_clock_difference_seconds").set(difference.as_secs_f64());
        // A disk may take long to answer.
        let state = tokio::task::spawn_blocking(move || machine.state()).await;
        let MachineState {
            disk,
            certificate_expires_at,
        } = state.unwrap_or_default();
        if let Some(disk) = disk {
            gauge!("switchboard_disk_free_bytes").set(float_size(disk.free_bytes));
            gauge!("switchboard_disk_size_bytes").set(float_size(disk.size_bytes));
        }
        if let Some(expires_at) = certificate_expires_at {
            let left = expires_at.duration_since(now).as_secs_f64();
            gauge!("switchboard_certificate_left_seconds").set(left);
        }
    }
}

fn set_callbacks(now: Timestamp, queues: &[QueueDepth], receivers: &[Receiver]) {
    let is_waiting =
        |depth: &&QueueDepth| matches!(depth.queue, Queue::CallbacksDue | Queue::CallbacksLater);
    let waiting: u32 = queues
        .iter()
        .filter(is_waiting)
        .map(|depth| depth.count.0)
        .sum();
    let waits = receivers.iter().filter(|receiver| receiver.waiting.0 > 0);
    let oldest = waits.filter_map(|receiver| receiver.oldest_at).min();
    gauge!("switchboard_callbacks_waiting").set(waiting);
    gauge!("switchboard_callbacks_oldest_seconds").set(age(now, oldest));
}

fn set_hosts(now: Timestamp, receivers: Vec<Receiver>, places: &mut HostPlaces) {
    let backlog = |receiver: Receiver| {
        let backlog = HostBacklog {
            waiting: receiver.waiting.0,
            oldest_at: receiver.oldest_at,
        };
        (receiver.host, backlog)
    };
    let backlogs: BTreeMap<_, _> = receivers.into_iter().map(backlog).collect();
    for (host, backlog) in places.arrange(now, backlogs) {
        gauge!("switchboard_callback_host_waiting", "host" => host.clone()).set(backlog.waiting);
        gauge!("switchboard_callback_host_oldest_seconds", "host" => host)
            .set(age(now, backlog.oldest_at));
    }
}

fn set_database(health: DatabaseHealth) {
    gauge!("switchboard_database_size_bytes").set(float_size(health.bytes));
    if let Some(bytes) = health.wal_bytes {
        gauge!("switchboard_database_wal_bytes").set(float_size(bytes));
    }
    let connections = health.connections;
    gauge!("switchboard_database_connections_busy").set(connections.busy);
    gauge!("switchboard_database_connections_max").set(connections.most);
    gauge!("switchboard_database_connections_waiting").set(connections.waiting);
}

/// Seconds since a time; 0 without one.
fn age(now: Timestamp, since: Option<Timestamp>) -> f64 {
    let seconds = since.map_or(0.0, |since| now.duration_since(since).as_secs_f64());
    seconds.max(0.0)
}

/// How many days the account can go on sending at today's rate.
fn days_left(now: Timestamp, account: &AccountBalance) -> f64 {
    let available = account.balance.plus(account.credit_limit);
    if account.spent_day != day_of(now) || account.spent <= Money::ZERO {
        return MOST_DAYS;
    }
    let elapsed = now
        .as_second()
        .rem_euclid(SECONDS_IN_A_DAY)
        .max(SHORTEST_SECONDS);
    let per_day = float(account.spent.micros()) * float(SECONDS_IN_A_DAY) / float(elapsed);
    (float(available.micros()) / per_day).clamp(0.0, MOST_DAYS)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floating-point numbers"
)]
const fn float(number: i64) -> f64 {
    number as f64
}

fn float_size(bytes: u64) -> f64 {
    float(i64::try_from(bytes).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_left_follow_from_the_spending_of_today() {
        let noon = Timestamp::from_second(20_000 * SECONDS_IN_A_DAY + 12 * 3600).expect("in range");
        let just_after_midnight =
            Timestamp::from_second(20_000 * SECONDS_IN_A_DAY + 60).expect("in range");
        for (case, now, balance, credit, spent_day, spent, expected) in [
            ("ten a day", noon, 100, 0, 20_000, 5, 10.0),
            ("with credit", noon, 100, 100, 20_000, 5, 20.0),
            ("nothing today", noon, 100, 0, 19_999, 5, MOST_DAYS),
            ("nothing ever", noon, 100, 0, 0, 0, MOST_DAYS),
            ("empty", noon, -1, 0, 20_000, 5, 0.0),
            (
                "the first hour",
                just_after_midnight,
                240,
                0,
                20_000,
                1,
                10.0,
            ),
        ] {
            let account = AccountBalance {
                id: AccountId::new(1).expect("an ID"),
                name: "acme".to_owned(),
                balance: Money::from_micros(balance * 1_000_000),
                credit_limit: Money::from_micros(credit * 1_000_000),
                spent_day,
                spent: Money::from_micros(spent * 1_000_000),
                low_balance: None,
            };
            let days = days_left(now, &account);
            assert!((days - expected).abs() < 1e-9, "{case}: {days}");
        }
    }
}
