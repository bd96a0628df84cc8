//! Messages from handsets: whose they are, putting their parts together, and storing them before the carrier is answered.

mod compose;
mod numbers;
mod owner;
mod replies;
mod simulated;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use domain::inbound::assembly::{PartText, assemble};
use domain::ports::{
    Delivered, DeliveredCopy, DeliveredResult, ForwardedText, HandsetSink, HandsetText, IfUnclear,
    InboundPart, PartKey, PartSet, ReceiptError, Store, StoreError,
};
use domain::{Clock, Timestamp};
use jiff::SignedDuration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::batcher::{BatchError, Batcher, Limits};
use crate::cluster::node::Node;
use crate::sending::submit::Submit;
use compose::Text;

pub use compose::Composer;
pub use numbers::{AddNumberError, Numbers};
use replies::Replies;
pub use simulated::SimulatedHandset;

/// How many texts may wait to be stored. Carriers wait for their answer, so this limits memory, not traffic.
const QUEUE: usize = 8192;
/// Maximum number of texts in one transaction.
const BATCH: usize = 512;
/// How many whole sets of parts may wait to be put together; others are found by the regular search.
const ASSEMBLY_QUEUE: usize = 1024;
/// How often sets of parts are searched that are whole or too old.
const SEARCH_EVERY: Duration = Duration::from_secs(5);
/// Maximum number of sets that one search puts together.
const SEARCH_STEP: u32 = 200;
/// How often confirmed answers are stored.
const CONFIRM_EVERY: Duration = Duration::from_millis(500);
/// Confirmed answers beyond this are dropped: they only make sure that no text is taken for a repetition after its
/// session has ended.
const MAX_CONFIRMED: usize = 100_000;
/// How long to wait until it is clear whether another node's session has ended; longer than a silent node counts as
/// alive.
const UNCLEAR_FOR: Duration = Duration::from_secs(12);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Takes texts from carriers.
pub(crate) struct Inbound {
    shared: Arc<Shared>,
    batcher: Batcher<(DeliveredCopy, Delivered), DeliveredResult, StoreError>,
    whole: mpsc::Sender<PartKey>,
    tasks: [AbortHandle; 2],
    replying: OnceLock<AbortHandle>,
}

struct Shared {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node: Arc<Node>,
    composer: Composer,
    /// How long a text waits for missing parts.
    incomplete_after: SignedDuration,
    sessions: Mutex<SessionChanges>,
}

/// What is known about sessions and not stored yet.
#[derive(Default)]
struct SessionChanges {
    confirmed: Vec<(i64, i64)>,
    ended: Vec<i64>,
}

impl Inbound {
    /// Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        node: Arc<Node>,
        composer: Composer,
        incomplete_after: SignedDuration,
    ) -> Arc<Self> {
        let shared = Arc::new(Shared {
            store,
            clock,
            node,
            composer,
            incomplete_after,
            sessions: Mutex::default(),
        });
        let limits = Limits {
            queue: QUEUE,
            batch: BATCH,
            writes: 1,
            interval: Duration::ZERO,
        };
        let batcher = Batcher::start(limits, {
            let shared = shared.clone();
            move |batch| {
                let shared = shared.clone();
                async move { shared.store(batch, IfUnclear::Wait).await }
            }
        });
        let (whole, sets) = mpsc::channel(ASSEMBLY_QUEUE);
        let sets = Arc::new(tokio::sync::Mutex::new(sets));
        let assembling = supervise::spawn("inbound-parts", {
            let shared = shared.clone();
            move || shared.clone().assemble_all(sets.clone())
        });
        let confirming = supervise::spawn("inbound-answers", {
            let shared = shared.clone();
            move || shared.clone().confirm_all()
        });
        Arc::new(Self {
            shared,
            batcher,
            whole,
            tasks: [assembling.abort_handle(), confirming.abort_handle()],
            replying: OnceLock::new(),
        })
    }

    /// From now on, sends replies to words such as STOP. Before there are carriers, none could be sent.
    pub(crate) fn send_replies(&self, submit: &Arc<Submit>) {
        self.replying.get_or_init(|| {
            let (store, clock) = (self.shared.store.clone(), self.shared.clock.clone());
            let replies = Replies::new(store, clock, submit.clone());
            let replying = supervise::spawn("inbound-replies", move || replies.clone().run());
            replying.abort_handle()
        });
    }

    /// Returns once all accepted texts are stored.
    pub(crate) async fn stop(&self) {
        self.batcher.stop().await;
        for task in self.tasks.iter().chain(self.replying.get()) {
            task.abort();
        }
        if let Err(error) = self.shared.store_session_changes().await {
            tracing::warn!(%error, "which answers carriers got could not be stored");
        }
    }

    async fn write(
        &self,
        copy: DeliveredCopy,
        delivered: Delivered,
    ) -> Result<DeliveredResult, ReceiptError> {
        let began = Instant::now();
        loop {
            let written = self.batcher.write((copy, delivered.clone())).await;
            match written {
                Ok(DeliveredResult::Unclear) if began.elapsed() < UNCLEAR_FOR => {
                    sleep(ASK_AGAIN_AFTER).await;
                }
                Ok(DeliveredResult::Unclear) => {
                    let batch = vec![(copy, delivered)];
                    let stored = self.shared.store(batch, IfUnclear::Store).await;
                    let stored = stored.map_err(|_| ReceiptError::Store)?;
                    return stored.first().copied().ok_or(ReceiptError::Store);
                }
                Ok(result) => return Ok(result),
                Err(BatchError::Full) => return Err(ReceiptError::Busy),
                Err(BatchError::Stopped) => return Err(ReceiptError::Stopping),
                Err(BatchError::Write(_)) => return Err(ReceiptError::Store),
            }
        }
    }
}

#[async_trait]
impl HandsetSink for Inbound {
    async fn receive_once(
        &self,
        source: [u8; 16],
        text: ForwardedText,
    ) -> Result<(), ReceiptError> {
        let stored = self.shared.store_once(source, text).await;
        stored.map_err(|error| {
            tracing::error!(%error, "a text from a handset cannot be stored; the carrier keeps it");
            ReceiptError::Store
        })
    }

    async fn receive(&self, copy: DeliveredCopy, text: HandsetText) -> Result<(), ReceiptError> {
        let now = self.shared.clock.now();
        let delivered = self.shared.delivered(text, now).await.map_err(|error| {
            tracing::error!(%error, "a text from a handset cannot be stored; the carrier keeps it");
            ReceiptError::Store
        })?;
        let key = match &delivered {
            Delivered::Part(part) => Some(part.key()),
            Delivered::Message(_) => None,
        };
        let result = self.write(copy, delivered).await?;
        if let Some(key) = key.filter(|_| result == DeliveredResult::Stored) {
            // A full queue is no harm: the regular search finds the set.
            let _ = self.whole.try_send(key);
        }
        Ok(())
    }

    fn confirm(&self, copies: &[(i64, i64)]) {
        let mut sessions = self.shared.sessions.lock().expect("no holder panics");
        let room = MAX_CONFIRMED.saturating_sub(sessions.confirmed.len());
        sessions.confirmed.extend(copies.iter().take(room));
    }

    fn end_session(&self, session: i64) {
        let mut sessions = self.shared.sessions.lock().expect("no holder panics");
        sessions.ended.push(session);
    }
}

impl Shared {
    async fn delivered(&self, text: HandsetText, now: Timestamp) -> Result<Delivered, StoreError> {
        let part = PartText {
            sequence: text.concatenation.map_or(1, |it| it.sequence),
            alphabet: text.alphabet,
            octets: text.octets,
        };
        if let Some(concatenation) = text.concatenation {
            return Ok(Delivered::Part(Box::new(InboundPart {
                carrier: text.carrier,
                from: text.from,
                to: text.to,
                concatenation,
                text: part,
                udh: text.udh,
                received_at: now,
            })));
        }
        let text = Text {
            carrier: text.carrier,
            from: text.from,
            to: text.to,
            whole: assemble(1, vec![part]),
            udh: text.udh,
            parts: 1,
            received_at: now,
        };
        Ok(Delivered::Message(Box::new(
            self.composer.message(text).await?,
        )))
    }

    async fn store_once(&self, source: [u8; 16], text: ForwardedText) -> Result<(), StoreError> {
        // What a text asks for is not done again when it comes again.
        let is_new = if self.store.has_source(source).await? {
            false
        } else {
            let message = self.composer.message(Text {
                carrier: text.carrier,
                from: text.from,
                to: text.to,
                whole: text.whole,
                udh: text.udh,
                parts: text.parts,
                received_at: self.clock.now(),
            });
            self.store.store_once(source, &message.await?).await?
        };
        let outcome = if is_new { "stored" } else { "repeated" };
        metrics::counter!("switchboard_inbound_parts_total", "outcome" => outcome).increment(1);
        Ok(())
    }

    async fn store(
        &self,
        batch: Vec<(DeliveredCopy, Delivered)>,
        if_unclear: IfUnclear,
    ) -> Result<Vec<DeliveredResult>, StoreError> {
        let has_ended = {
            let sessions = self.sessions.lock().expect("no holder panics");
            !sessions.ended.is_empty()
        };
        // A carrier may deliver again as soon as its session has ended.
        if has_ended {
            self.store_session_changes().await?;
        }
        let stored = self
            .store
            .store_delivered(self.node.id(), Arc::new(batch), if_unclear);
        let stored = stored.await;
        match &stored {
            Ok(results) => {
                let count = |wanted| results.iter().filter(|it| **it == wanted).count() as u64;
                let counted = [
                    ("stored", count(DeliveredResult::Stored)),
                    ("repeated", count(DeliveredResult::Repeated)),
                ];
                for (outcome, count) in counted.into_iter().filter(|(_, count)| *count > 0) {
                    metrics::counter!("switchboard_inbound_parts_total", "outcome" => outcome)
                        .increment(count);
                }
            }
            Err(error) => {
                let cause = std::error::Error::source(error).map(ToString::to_string);
                tracing::error!(%error, cause, "texts from handsets cannot be stored; the carrier keeps them");
            }
        }
        stored
    }

    /// Stores which answers carriers got and which sessions have ended. What cannot be stored is kept.
    async fn store_session_changes(&self) -> Result<(), StoreError> {
        let changes = {
            let mut sessions = self.sessions.lock().expect("no holder panics");
            std::mem::take(&mut *sessions)
        };
        let stored = self.write_session_changes(&changes).await;
        if stored.is_err() {
            let mut sessions = self.sessions.lock().expect("no holder panics");
            sessions.ended.extend(changes.ended);
            sessions.confirmed.extend(changes.confirmed);
        }
        stored
    }

    async fn write_session_changes(&self, changes: &SessionChanges) -> Result<(), StoreError> {
        if !changes.confirmed.is_empty() {
            self.store.confirm_copies(&changes.confirmed).await?;
        }
        for session in &changes.ended {
            self.store.end_delivering(*session).await?;
        }
        Ok(())
    }

    async fn confirm_all(self: Arc<Self>) {
        loop {
            sleep(CONFIRM_EVERY).await;
            if let Err(error) = self.store_session_changes().await {
                tracing::debug!(%error, "which answers carriers got is stored later");
            }
        }
    }

    /// Puts sets of parts together: at once when their last part came, and by a regular search.
    async fn assemble_all(self: Arc<Self>, sets: Arc<tokio::sync::Mutex<mpsc::Receiver<PartKey>>>) {
        let mut sets = sets.lock().await;
        let mut next_search = Instant::now();
        loop {
            let done = tokio::select! {
                key = sets.recv() => match key {
                    Some(key) => self.assemble_key(&key).await,
                    None => return,
                },
                () = tokio::time::sleep_until(next_search) => {
                    next_search = Instant::now() + SEARCH_EVERY;
                    self.assemble_found().await
                }
            };
            if let Err(error) = done {
                tracing::warn!(%error, "parts cannot be put together; trying again");
            }
        }
    }

    async fn assemble_key(&self, key: &PartKey) -> Result<(), StoreError> {
        match self.store.find_part_set(key).await? {
            Some(set) => self.assemble(set).await,
            None => Ok(()),
        }
    }

    async fn assemble_found(&self) -> Result<(), StoreError> {
        loop {
            let before = self.clock.now() - self.incomplete_after;
            let sets = self.store.list_part_sets(before, SEARCH_STEP).await?;
            let is_last = sets.len() < SEARCH_STEP as usize;
            for set in sets {
                self.assemble(set).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn assemble(&self, set: PartSet) -> Result<(), StoreError> {
        let message = self.composer.message(Text {
            carrier: set.key.carrier.clone(),
            from: set.key.from.clone(),
            to: set.key.to.clone(),
            whole: assemble(set.key.total, set.parts.clone()),
            udh: set.udh.clone(),
            parts: set.key.total,
            received_at: set.received_at,
        });
        let message = message.await?;
        self.store.replace_parts(&set, &message).await.map(drop)
    }
}
