//! Observes what notifications are about, and stores what changed.
//!
//! Every worker does this. All of them observe the same database, and an alert is replaced only if it is as this node
//! read it before it observed, so one node sends one notification for each change, and an older observation never wins.

mod falling;
mod receivers;
mod slowed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::alert::{Alert, Decision, Event, Level, Observation, Topic, decide};
use domain::ports::{
    AccountBalance, DiskSpace, Health, ListRange, Machine, SenderFilter, Store, StoreError,
};
use domain::sender::SenderState;
use domain::{AccountId, Clock, Money, Timestamp};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::MOST_ALERTS;
use super::targets::{NotifyTarget, notifications};
use slowed::Counting;

const OBSERVE_EVERY: Duration = Duration::from_secs(5);
/// How many balances are observed at a time.
const ACCOUNTS: u32 = 500;
/// How many sender IDs that wait for a review are observed.
const SENDERS: u32 = 500;
/// A receiver fails when one of its callbacks was tried so often: it has failed for half a minute by then.
const FAILED_TRIES: u32 = 3;
/// At most this many failing receivers of an account cause notifications.
const RECEIVERS_OF_ACCOUNT: usize = 20;
/// How long a lost node is shown.
const SHOW_LOST: SignedDuration = SignedDuration::from_hours(1);
/// A certificate that expires within this time causes a notification.
const EXPIRING: SignedDuration = SignedDuration::from_hours(14 * 24);
/// A disk with less free space is nearly full, or with less than a twentieth of its size.
const LOW_DISK_BYTES: u64 = 512 * 1024 * 1024;

/// Observes and stores.
pub(crate) struct AlertWatch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) machine: Arc<dyn Machine>,
    /// The name of the machine.
    pub(crate) host: String,
    pub(crate) targets: Arc<[NotifyTarget]>,
}

/// What was seen of a topic: of all its subjects, or only of some.
struct Seen {
    topic: Topic,
    /// The subjects that were looked at; all of the topic if `None`.
    scope: Option<BTreeSet<String>>,
    observations: Vec<Observation>,
}

impl AlertWatch {
    pub(crate) async fn run(self: Arc<Self>) {
        let (mut after, mut codes, mut rates) = (None, Counting::default(), Counting::default());
        let mut failed = false;
        let mut tick = tokio::time::interval(OBSERVE_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let observed = self.observe_all(&mut after, &mut codes, &mut rates).await;
            if let (Err(error), false) = (&observed, failed) {
                tracing::warn!(%error, "alerts cannot be observed; trying again");
            }
            failed = observed.is_err();
        }
    }

    async fn observe_all(
        &self,
        after: &mut Option<AccountId>,
        codes: &mut Counting,
        rates: &mut Counting,
    ) -> Result<(), StoreError> {
        let alerts = self.store.list_alerts(None, MOST_ALERTS).await?;
        let seen = [
            self.carriers().await?,
            self.balances(after, &alerts).await?,
            self.receivers(&alerts).await?,
            self.senders().await?,
            self.nodes(&alerts),
            self.slowed_prefixes(codes).await?,
            self.falling_rates(&alerts, rates).await?,
        ];
        for seen in seen {
            self.apply(&alerts, seen).await?;
        }
        for seen in self.machine(&alerts).await? {
            self.apply(&alerts, seen).await?;
        }
        Ok(())
    }

    /// Stores what follows from what was seen. A subject that was looked at and not seen is fine.
    async fn apply(&self, alerts: &[Alert], seen: Seen) -> Result<(), StoreError> {
        let of_topic = alerts.iter().filter(|alert| alert.topic == seen.topic);
        let known: BTreeMap<&str, &Alert> = of_topic
            .map(|alert| (alert.subject.as_str(), alert))
            .collect();
        let is_looked_at = |subject: &str| {
            let scope = seen.scope.as_ref();
            scope.is_none_or(|scope| scope.contains(subject))
        };
        let observed: BTreeSet<&str> = seen
            .observations
            .iter()
            .map(|one| one.subject.as_str())
            .collect();
        let gone = known.values().filter(|alert| {
            is_looked_at(&alert.subject) && !observed.contains(alert.subject.as_str())
        });
        let mut fine = Vec::new();
        for alert in gone {
            if alert.topic == Topic::Carrier {
                // It was removed from the configuration, so it is neither down nor up.
                let now = self.clock.now();
                self.store.change_alert(Some(alert), None, &[], now).await?;
                continue;
            }
            fine.push(Observation {
                topic: alert.topic,
                subject: alert.subject.clone(),
                account: alert.account,
                level: Level::Fine,
                data: alert.data.clone(),
                quiet_at_first: false,
            });
        }
        for observation in seen.observations.iter().chain(&fine) {
            let before = known.get(observation.subject.as_str()).copied();
            self.store_change(before, observation).await?;
        }
        Ok(())
    }

    async fn store_change(
        &self,
        before: Option<&Alert>,
        observation: &Observation,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        match decide(before, observation, now) {
            Decision::Nothing => Ok(()),
            Decision::Remove => self
                .store
                .change_alert(before, None, &[], now)
                .await
                .map(drop),
            Decision::Store(after, event) => {
                let notifications = match event {
                    Some(event) => self.notifications(&after, event, now).await?,
                    None => Vec::new(),
                };
                let changed = self
                    .store
                    .change_alert(before, Some(&after), &notifications, now)
                    .await?;
                if let (true, Some(event)) = (changed, event) {
                    let (event, subject) = (event.name(), &after.subject);
                    let count = notifications.len();
                    tracing::info!(event, subject, count, "a change is notified");
                }
                Ok(())
            }
        }
    }

    async fn notifications(
        &self,
        alert: &Alert,
        event: Event,
        now: Timestamp,
    ) -> Result<Vec<domain::ports::NewNotification>, StoreError> {
        let data: Value = serde_json::from_str(&alert.data).unwrap_or_default();
        let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let body = json!({"type": event.name(), "timestamp": time, "data": data}).to_string();
        let own = match alert.account.filter(|_| event.is_for_accounts()) {
            Some(account) => Some((account, self.store.find_notify_setting(account).await?)),
            None => None,
        };
        let own = own.as_ref().map(|(account, setting)| (*account, setting));
        Ok(notifications(&self.targets, own, event, &body))
    }

    /// A carrier is down if it is down on every node that has it.
    async fn carriers(&self) -> Result<Seen, StoreError> {
        let mut down: BTreeMap<String, (bool, Option<String>)> = BTreeMap::new();
        for status in self.store.list_carrier_statuses().await? {
            let state = status.status.state;
            let entry = down.entry(status.status.name).or_insert((true, None));
            entry.0 &= state.health == Health::Down;
            entry.1 = state.note.or(entry.1.take());
        }
        let observations = down
            .into_iter()
            .map(|(carrier, (is_down, note))| Observation {
                topic: Topic::Carrier,
                account: None,
                level: if is_down { Level::Bad } else { Level::Fine },
                data: json!({"carrier": carrier, "reason": note.filter(|_| is_down)}).to_string(),
                quiet_at_first: false,
                subject: carrier,
            });
        let observations: Vec<Observation> = observations.collect();
        // While the nodes start, none has reported its carriers.
        let scope = observations.is_empty().then(BTreeSet::new);
        Ok(Seen {
            topic: Topic::Carrier,
            scope,
            observations,
        })
    }

    /// The next accounts. An account that never had money causes a notification only if it has a limit.
    async fn balances(
        &self,
        after: &mut Option<AccountId>,
        alerts: &[Alert],
    ) -> Result<Seen, StoreError> {
        let first = after.map_or(0, AccountId::get);
        let accounts = self.store.list_balances(*after, ACCOUNTS).await?;
        let is_last = accounts.len() < ACCOUNTS as usize;
        *after = accounts
            .last()
            .map(|account| account.id)
            .filter(|_| !is_last);
        let end = after.map_or(u64::MAX, AccountId::get);
        let known = alerts.iter().filter(|alert| alert.topic == Topic::Balance);
        let in_range = known.filter(|alert| {
            let account = alert.account.map_or(0, AccountId::get);
            account > first && account <= end
        });
        let scope = in_range.map(|alert| alert.subject.clone()).collect();
        let observations = accounts.into_iter().map(|account| {
            let low = account.low_balance.map(|low| low.to_string());
            Observation {
                topic: Topic::Balance,
                subject: account.id.to_string(),
                account: Some(account.id),
                level: balance_level(&account),
                data: json!({
                    "account": account.name,
                    "balance": account.balance.to_string(),
                    "lowBalance": low,
                })
                .to_string(),
                quiet_at_first: account.low_balance.is_none(),
            }
        });
        Ok(Seen {
            topic: Topic::Balance,
            scope: Some(scope),
            observations: observations.collect(),
        })
    }

    async fn receivers(&self, alerts: &[Alert]) -> Result<Seen, StoreError> {
        let mut failing = self.store.list_failing_receivers(FAILED_TRIES).await?;
        // One account must not crowd out the alerts of others.
        let mut counts: BTreeMap<AccountId, usize> = BTreeMap::new();
        failing.retain(|receiver| {
            let count = counts.entry(receiver.account).or_default();
            *count += 1;
            *count <= RECEIVERS_OF_ACCOUNT
        });
        let ids: Vec<AccountId> = failing.iter().map(|receiver| receiver.account).collect();
        let names = self.names(&ids).await?;
        let observations = failing.into_iter().map(|receiver| {
            let since = receiver
                .oldest_at
                .strftime("%Y-%m-%dT%H:%M:%SZ")
                .to_string();
            let subject = format!("{} {}", receiver.account, receiver.address);
            let data = json!({
                "account": names.get(&receiver.account),
                "host": receiver.host,
                "waiting": receiver.waiting,
                "since": since,
                "reason": receiver.last_reason,
            });
            Observation {
                topic: Topic::CallbackHost,
                data: receivers::data(alerts, &subject, &data),
                subject,
                account: Some(receiver.account),
                level: Level::Bad,
                quiet_at_first: false,
            }
        });
        Ok(Seen {
            topic: Topic::CallbackHost,
            scope: None,
            observations: observations.collect(),
        })
    }

    async fn senders(&self) -> Result<Seen, StoreError> {
        let filter = SenderFilter {
            state: Some(SenderState::Pending),
            ..SenderFilter::default()
        };
        let range = ListRange {
            limit: SENDERS,
            offset: 0,
        };
        let senders = self.store.list_senders(filter, range).await?;
        let ids: Vec<AccountId> = senders.iter().map(|sender| sender.account).collect();
        let names = self.names(&ids).await?;
        let observations = senders.into_iter().map(|sender| Observation {
            topic: Topic::Sender,
            subject: sender.id.to_string(),
            account: None,
            level: Level::Bad,
            data: json!({
                "id": sender.id.to_string(),
                "sender": sender.name.to_string(),
                "account": names.get(&sender.account),
            })
            .to_string(),
            quiet_at_first: false,
        });
        Ok(Seen {
            topic: Topic::Sender,
            scope: None,
            observations: observations.collect(),
        })
    }

    async fn names(&self, ids: &[AccountId]) -> Result<BTreeMap<AccountId, String>, StoreError> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names = self.store.list_account_names(ids).await?;
        Ok(names.into_iter().collect())
    }

    /// The store reports lost nodes itself, in the transaction that removes them.
    fn nodes(&self, alerts: &[Alert]) -> Seen {
        let now = self.clock.now();
        let lost = alerts.iter().filter(|alert| {
            let is_recent = now.duration_since(alert.since) < SHOW_LOST;
            alert.topic == Topic::Node && alert.level != Level::Fine && is_recent
        });
        let observations = lost.map(|alert| Observation {
            topic: Topic::Node,
            subject: alert.subject.clone(),
            account: None,
            level: alert.level,
            data: alert.data.clone(),
            quiet_at_first: false,
        });
        Seen {
            topic: Topic::Node,
            scope: None,
            observations: observations.collect(),
        }
    }

    /// The disk and the certificate of this machine. Other machines watch their own, as long as one of
    /// their nodes runs.
    async fn machine(&self, alerts: &[Alert]) -> Result<[Seen; 2], StoreError> {
        let machine = self.machine.clone();
        let state = tokio::task::spawn_blocking(move || machine.state()).await;
        let state = state.unwrap_or_default();
        let scope = self.hosts_to_judge(alerts).await?;
        let observation = |topic, is_bad: bool, data: Value| Observation {
            topic,
            subject: self.host.clone(),
            account: None,
            level: if is_bad { Level::Bad } else { Level::Fine },
            data: data.to_string(),
            quiet_at_first: false,
        };
        let disk = state.disk.map(|disk| {
            let data = json!({
                "host": self.host,
                "freeBytes": disk.free_bytes,
                "sizeBytes": disk.size_bytes,
            });
            observation(Topic::Disk, is_low(disk), data)
        });
        let certificate = state.certificate_expires_at.map(|expires_at| {
            let is_expiring = expires_at.duration_since(self.clock.now()) < EXPIRING;
            let expires = expires_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let data = json!({"host": self.host, "expires": expires});
            observation(Topic::Certificate, is_expiring, data)
        });
        let seen = |topic, observation: Option<Observation>| Seen {
            topic,
            scope: Some(scope.clone()),
            observations: observation.into_iter().collect(),
        };
        Ok([
            seen(Topic::Disk, disk),
            seen(Topic::Certificate, certificate),
        ])
    }

    /// This machine, and machines of former nodes that have alerts.
    async fn hosts_to_judge(&self, alerts: &[Alert]) -> Result<BTreeSet<String>, StoreError> {
        let of_machines = alerts
            .iter()
            .filter(|alert| matches!(alert.topic, Topic::Disk | Topic::Certificate));
        let mut hosts: BTreeSet<String> = of_machines.map(|alert| alert.subject.clone()).collect();
        if hosts.iter().any(|host| *host != self.host) {
            for node in self.store.list_nodes().await? {
                if let Some(facts) = node.facts {
                    hosts.remove(&facts.info.host);
                }
            }
        }
        hosts.insert(self.host.clone());
        Ok(hosts)
    }
}

fn balance_level(account: &AccountBalance) -> Level {
    let available = account.balance.plus(account.credit_limit);
    if available <= Money::ZERO {
        return Level::Worse;
    }
    match account.low_balance {
        Some(low) if account.balance < low => Level::Bad,
        _ => Level::Fine,
    }
}

fn is_low(disk: DiskSpace) -> bool {
    disk.free_bytes < LOW_DISK_BYTES || disk.free_bytes < disk.size_bytes / 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_low_below_its_limit_and_empty_at_zero() {
        for (case, balance, credit, low, expected) in [
            ("enough", 20, 0, Some(10), Level::Fine),
            ("at the limit", 10, 0, Some(10), Level::Fine),
            ("below", 9, 0, Some(10), Level::Bad),
            ("without a limit", 1, 0, None, Level::Fine),
            ("used up", 0, 0, None, Level::Worse),
            ("on credit", -5, 10, Some(0), Level::Bad),
            ("credit used up", -10, 10, Some(0), Level::Worse),
        ] {
            let account = AccountBalance {
                id: AccountId::new(1).expect("an ID"),
                name: "acme".to_owned(),
                balance: Money::from_micros(balance * 1_000_000),
                credit_limit: Money::from_micros(credit * 1_000_000),
                spent_day: 0,
                spent: Money::ZERO,
                low_balance: low.map(|low| Money::from_micros(low * 1_000_000)),
            };
            assert_eq!(balance_level(&account), expected, "{case}");
        }
    }

    #[test]
    fn a_disk_is_low_by_its_size_or_by_a_minimum() {
        const GIB: u64 = 1024 * 1024 * 1024;
        for (free_bytes, size_bytes, expected) in [
            (50 * GIB, 100 * GIB, false),
            (4 * GIB, 100 * GIB, true),
            (GIB, 2 * GIB, false),
            (GIB / 4, GIB, true),
        ] {
            let disk = DiskSpace {
                free_bytes,
                size_bytes,
            };
            assert_eq!(is_low(disk), expected, "{disk:?}");
        }
    }
}
