//! Background jobs: expiry, early receipts, traffic counts, retention, folding the ledger.

use std::sync::Arc;
use std::time::Duration;

use domain::Clock;
use domain::code_cap;
use domain::delivery::SIMULATOR;
use domain::kill_point::{KillPoint, pass};
use domain::ports::{BillingStore, Store, StoreError, TrafficStore, WorkStore};
use jiff::SignedDuration;
use tokio::task::{AbortHandle, JoinHandle};

use crate::callbacks::Callbacks;
use crate::cluster::node::Node;
use crate::monitoring::ended::EndedCounters;
use crate::ported::{MAX_NUMBERS, PortedNumbers};

/// How often expired messages are ended.
const EXPIRE_EVERY: Duration = Duration::from_secs(1);
/// How often early receipts are compared with the parts that wait for one.
const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// How often recent traffic counts are added up.
const ADD_UP_EVERY: Duration = Duration::from_secs(5);
/// Maximum number of counts that one step adds up; each covers a batch of messages.
const ADD_UP_STEP: u32 = 5_000;
/// How often rows past their retention are looked for.
const PRUNE_EVERY: Duration = Duration::from_mins(1);
/// How often ledgers are searched for entries to fold. There is work once a day.
const FOLD_EVERY: Duration = Duration::from_hours(1);
/// Maximum number of ledger entries that one step folds.
const FOLD_STEP: u32 = 1_000;
/// How long parts and unmatched receipts are stored.
const KEEP_RECEIPTS: SignedDuration = SignedDuration::from_hours(72);
/// How long it is remembered what carriers delivered, longer than they deliver it again.
const KEEP_COPIES: SignedDuration = SignedDuration::from_mins(11);
/// How long removed opt-outs are stored, so that all nodes notice. A node that was away longer reads the whole list.
const KEEP_REMOVED: SignedDuration = SignedDuration::from_hours(24);
/// How long a simulated handset shows a confirmation code.
const KEEP_INBOX_CODES: SignedDuration = SignedDuration::from_hours(1);
/// The reason for rejecting a number whose PIN was never entered.
const NOT_CONFIRMED: &str =
    "the PIN was not entered within a day; register the number again to get another one";
/// Maximum number of rows that one step touches, so that no other write waits long.
const STEP: u32 = 500;
/// How many ported numbers one step removes if there are too many.
const REMOVE_STEP: u32 = 5_000;

/// How long data is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    pub(crate) messages: Option<SignedDuration>,
    /// How long texts of ended messages are stored; `None`: as long as the messages.
    pub(crate) texts: Option<SignedDuration>,
    /// How long ledger entries stay unfolded.
    pub(crate) ledger: Option<SignedDuration>,
    /// How long the networks of ported numbers are remembered.
    pub(crate) ported: SignedDuration,
}

/// The background jobs of a node.
pub(crate) struct Maintenance {
    tasks: Vec<AbortHandle>,
}

impl Maintenance {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        callbacks: Arc<Callbacks>,
        ended: Arc<EndedCounters>,
        ported: Arc<PortedNumbers>,
        keep: Retention,
    ) -> Self {
        let comparing = supervise::spawn("early-receipts", {
            let (store, node, callbacks) = (store.clone(), node.clone(), callbacks.clone());
            let ended = ended.clone();
            move || {
                compare_all(
                    store.clone(),
                    node.clone(),
                    callbacks.clone(),
                    ended.clone(),
                )
            }
        });
        let expiring = spawn_expiry(store.clone(), node, callbacks, ended);
        let adding_up = supervise::spawn("traffic", {
            let store = store.clone();
            move || add_up_all(store.clone())
        });
        let pruning = supervise::spawn("retention", {
            let store = store.clone();
            move || prune_all(store.clone(), clock.clone(), ported.clone(), keep)
        });
        let fold = move |age| supervise::spawn("ledger", move || fold_all(store.clone(), age));
        let folding = keep.ledger.map(fold);
        let tasks = [comparing, expiring, adding_up, pruning];
        let tasks = tasks.into_iter().chain(folding);
        Self {
            tasks: tasks.map(|task| task.abort_handle()).collect(),
        }
    }

    pub(crate) fn stop(&self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Starts the task that ends expired messages.
pub(crate) fn spawn_expiry(
    store: Arc<dyn WorkStore>,
    node: Arc<Node>,
    callbacks: Arc<Callbacks>,
    ended: Arc<EndedCounters>,
) -> JoinHandle<()> {
    supervise::spawn("expiry", move || {
        expire_all(
            store.clone(),
            node.clone(),
            callbacks.clone(),
            ended.clone(),
        )
    })
}

async fn expire_all(
    store: Arc<dyn WorkStore>,
    node: Arc<Node>,
    callbacks: Arc<Callbacks>,
    counters: Arc<EndedCounters>,
) {
    let mut tick = tokio::time::interval(EXPIRE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        for is_sent in [true, false] {
            while expire(&*store, &node, &callbacks, &counters, is_sent).await {}
        }
    }
}

/// Ends expired messages, either those that a carrier took and never reported on, or those in route pools. Returns
/// whether there may be more.
async fn expire(
    store: &dyn WorkStore,
    node: &Node,
    callbacks: &Arc<Callbacks>,
    counters: &EndedCounters,
    is_sent: bool,
) -> bool {
    let reservation = callbacks.reserve(STEP as usize);
    let (holder, is_held) = (node.id(), reservation.is_some());
    let expired = if is_sent {
        store.expire_sent(holder, STEP, is_held).await
    } else {
        store.expire_pooled(holder, STEP, is_held).await
    };
    match expired {
        Ok(mut ended) => {
            for ended in &ended {
                counters.count(None, ended);
            }
            callbacks.take(holder, reservation, ended.iter_mut());
            ended.len() >= STEP as usize
        }
        Err(error) => {
            tracing::warn!(%error, "expired messages cannot be ended; trying again later");
            callbacks.write_failed();
            false
        }
    }
}

/// Settles receipts left by a node that stopped between storing them and looking for their parts.
async fn compare_all(
    store: Arc<dyn WorkStore>,
    node: Arc<Node>,
    callbacks: Arc<Callbacks>,
    counters: Arc<EndedCounters>,
) {
    let mut tick = tokio::time::interval(COMPARE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let reservation = callbacks.reserve(STEP as usize);
        let holder = node.id();
        match store
            .match_stored_receipts(holder, STEP, reservation.is_some())
            .await
        {
            Ok(mut ended) => {
                for ended in &ended {
                    counters.count(None, ended);
                }
                callbacks.take(holder, reservation, ended.iter_mut());
            }
            Err(error) => {
                tracing::warn!(%error, "early receipts cannot be compared with parts; trying again later");
                callbacks.write_failed();
            }
        }
    }
}

async fn add_up_all(store: Arc<dyn TrafficStore>) {
    let mut tick = tokio::time::interval(ADD_UP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        loop {
            match store.add_up_traffic(ADD_UP_STEP).await {
                Ok(added) if added >= u64::from(ADD_UP_STEP) => tokio::task::yield_now().await,
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "traffic counts cannot be added up; trying again later");
                    break;
                }
            }
        }
    }
}

async fn prune_all(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ported: Arc<PortedNumbers>,
    keep: Retention,
) {
    let mut tick = tokio::time::interval(PRUNE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let pruned = async {
            prune(&*store, &*clock, keep).await?;
            prune_ported(&*store, &*clock, &ported, keep.ported).await
        };
        if let Err(error) = pruned.await {
            tracing::warn!(%error, "old rows cannot be deleted; trying again later");
        }
    }
}

async fn fold_all(store: Arc<dyn BillingStore>, age: SignedDuration) {
    let mut tick = tokio::time::interval(FOLD_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        loop {
            match store.fold_ledger(age, FOLD_STEP).await {
                Ok(true) => tokio::task::yield_now().await,
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, "ledgers cannot be folded; trying again later");
                    break;
                }
            }
        }
    }
}

/// Deletes what is old, and the oldest if there are too many numbers.
async fn prune_ported(
    store: &dyn Store,
    clock: &dyn Clock,
    ported: &PortedNumbers,
    keep: SignedDuration,
) -> Result<(), StoreError> {
    let before = || clock.now() - keep;
    while store.prune_ported(before(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    let mut surplus = ported.count().saturating_sub(MAX_NUMBERS);
    if surplus > 0 {
        // More than needed, because each removal makes all nodes read the list again.
        surplus += MAX_NUMBERS / 10;
    }
    while surplus > 0 {
        let removed = store.remove_oldest_ported(REMOVE_STEP).await?;
        if removed == 0 {
            break;
        }
        surplus = surplus.saturating_sub(usize::try_from(removed).unwrap_or(usize::MAX));
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn prune_codes(store: &dyn Store, clock: &dyn Clock) -> Result<(), StoreError> {
    let day_ago = || clock.now() - code_cap::DAY;
    while store.prune_codes(day_ago(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    while store
        .prune_code_texts(SIMULATOR, KEEP_INBOX_CODES, STEP)
        .await?
        >= u64::from(STEP)
    {
        tokio::task::yield_now().await;
    }
    while store
        .expire_senders(day_ago(), NOT_CONFIRMED, clock.now(), STEP)
        .await?
        >= u64::from(STEP)
    {
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn prune(store: &dyn Store, clock: &dyn Clock, keep: Retention) -> Result<(), StoreError> {
    while store.prune_recipients(clock.now(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    while store.prune_receipts(KEEP_RECEIPTS, STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    while store.prune_grants(clock.now(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    let removed = clock.now() - KEEP_REMOVED;
    while store.prune_opt_outs(removed, STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    while store.prune_polls(clock.now(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    while store.prune_attempts(clock.now(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    prune_codes(store, clock).await?;
    let copies_before = || clock.now() - KEEP_COPIES;
    while store.prune_copies(copies_before(), STEP).await? >= u64::from(STEP) {
        tokio::task::yield_now().await;
    }
    pass(KillPoint::PruneStep);
    if let Some(age) = keep.messages {
        while store.prune_messages(age, STEP).await? >= u64::from(STEP) {
            tokio::task::yield_now().await;
        }
        while store.prune_inbound(age, STEP).await? >= u64::from(STEP) {
            tokio::task::yield_now().await;
        }
        let before = || clock.now() - age;
        while store.prune_verifications(before(), STEP).await? >= u64::from(STEP) {
            tokio::task::yield_now().await;
        }
    }
    if let Some(age) = keep.texts {
        while store.forget_texts(age, STEP).await? {
            tokio::task::yield_now().await;
        }
        while store.forget_inbound_texts(age, STEP).await? {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
