//! Carriers, messages and a sink for receipts.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, CarrierRef, Claim, QueuedMessage, Receipt};
use domain::message::text::measure;
use domain::ports::{
    Carrier as _, DeliveredCopy, ForwardedText, HandsetSink, HandsetText, Health, ReceiptError,
    ReceiptSink,
};
use domain::{AccountId, Channel, Clock, MessageId, Msisdn, Originator, Priority, Timestamp};
use outbound::{SmppCarrier, SmppSettings};
use testkit::TEST_TIMEOUT;
use testkit::smsc::Smsc;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// How often a condition is checked.
const CHECK_EVERY: Duration = Duration::from_millis(5);

/// A clock that does not move, so that PDUs are always the same.
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// Stores receipts, and refuses as many as it is told to.
pub(crate) struct Sink {
    received: watch::Sender<Vec<Receipt>>,
    texts: watch::Sender<Vec<(DeliveredCopy, HandsetText)>>,
    ended: watch::Sender<Vec<i64>>,
    refusals: AtomicUsize,
    /// A receipt is stored only with a permit.
    permits: Semaphore,
}

impl Sink {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(0, Semaphore::MAX_PERMITS)
    }

    /// Refuses the first `count` receipts.
    pub(crate) fn refusing(count: usize) -> Arc<Self> {
        Self::with(count, Semaphore::MAX_PERMITS)
    }

    /// Stores nothing until it is told to continue.
    pub(crate) fn waiting() -> Arc<Self> {
        Self::with(0, 0)
    }

    fn with(refusals: usize, permits: usize) -> Arc<Self> {
        Arc::new(Self {
            received: watch::Sender::default(),
            texts: watch::Sender::default(),
            ended: watch::Sender::default(),
            refusals: AtomicUsize::new(refusals),
            permits: Semaphore::new(permits),
        })
    }

    pub(crate) fn resume(&self) {
        self.permits.add_permits(1_000);
    }

    pub(crate) fn received(&self) -> Vec<Receipt> {
        self.received.borrow().clone()
    }

    pub(crate) fn texts(&self) -> Vec<(DeliveredCopy, HandsetText)> {
        self.texts.borrow().clone()
    }

    pub(crate) fn ended(&self) -> Vec<i64> {
        self.ended.borrow().clone()
    }

    /// Waits for this many receipts.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Receipt> {
        let mut received = self.received.subscribe();
        let enough = received.wait_for(|receipts| receipts.len() >= count);
        let in_time = timeout(TEST_TIMEOUT, enough)
            .await
            .expect("receipts in time");
        in_time.expect("the sink is alive").clone()
    }
}

#[async_trait]
impl ReceiptSink for Sink {
    async fn receive(&self, receipt: Receipt) -> Result<bool, ReceiptError> {
        let _permit = self.permits.acquire().await.expect("never closed");
        let decrement = |left: usize| left.checked_sub(1);
        let refused = self
            .refusals
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement);
        if refused.is_ok() {
            return Err(ReceiptError::Busy);
        }
        self.received.send_modify(|received| received.push(receipt));
        Ok(true)
    }

    async fn mark_seen(&self, _: CarrierRef, _: Timestamp) -> Result<(), ReceiptError> {
        panic!("an SMPP carrier never reports that a message was seen");
    }
}

#[async_trait]
impl HandsetSink for Sink {
    async fn receive_once(&self, _: [u8; 16], _: ForwardedText) -> Result<(), ReceiptError> {
        panic!("an SMPP carrier delivers PDUs");
    }

    async fn receive(&self, copy: DeliveredCopy, text: HandsetText) -> Result<(), ReceiptError> {
        let _permit = self.permits.acquire().await.expect("never closed");
        self.texts.send_modify(|texts| texts.push((copy, text)));
        Ok(())
    }

    fn confirm(&self, _: &[(i64, i64)]) {}

    fn end_session(&self, session: i64) {
        self.ended.send_modify(|ended| ended.push(session));
    }
}

/// Settings with short timeouts.
pub(crate) fn settings(smsc: &Smsc) -> SmppSettings {
    SmppSettings {
        reconnect_after: Duration::from_millis(20),
        response_timeout: Duration::from_secs(5),
        enquire_every: Duration::from_secs(5),
        ..SmppSettings::new("alpha", smsc.addr().to_string(), "user", "hush-hush")
    }
}

/// A carrier that may have all its binds, but is not connected yet.
pub(crate) fn start(settings: SmppSettings, sink: &Arc<Sink>) -> Arc<SmppCarrier> {
    let carrier = SmppCarrier::start(settings, sink.clone(), sink.clone(), Arc::new(FixedClock));
    carrier.allow_binds(u16::MAX);
    carrier
}

/// A carrier with all links up.
pub(crate) async fn connected(settings: SmppSettings) -> (Arc<SmppCarrier>, Arc<Sink>) {
    let sink = Sink::new();
    let carrier = start(settings, &sink);
    until_up(&carrier).await;
    (carrier, sink)
}

/// Waits until every link is up and the rate is not reduced.
pub(crate) async fn until_up(carrier: &SmppCarrier) {
    eventually("the carrier is up", || carrier.health() == Health::Up).await;
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let polling = async {
        let mut ticks = interval(CHECK_EVERY);
        while !condition() {
            ticks.tick().await;
        }
    };
    let in_time = timeout(TEST_TIMEOUT, polling).await;
    assert!(in_time.is_ok(), "timed out waiting until {what}");
}

/// A message. Its ID is also the end of its recipient's number.
pub(crate) fn queued(id: u64, text: &str) -> QueuedMessage {
    QueuedMessage {
        id: MessageId::new(id).expect("in range"),
        account: AccountId::new(1).expect("in range"),
        channel: Channel::Sms,
        to: Msisdn::parse(&format!("+3712{id:07}")).expect("a number"),
        from: Some(Originator::Name("Acme".to_owned())),
        text: text.to_owned(),
        interactive: None,
        shape: measure(text).expect("a text"),
        udh: None,
        priority: Priority::Normal,
        test_mode: None,
        notice: false,
        expires_at: Timestamp::from_second(259_200).expect("in range"),
        claim: Claim {
            due_at: Timestamp::UNIX_EPOCH,
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
        unanswered_by: None,
        trace: None,
    }
}

/// Sends a message and waits for the result, within a deadline.
pub(crate) async fn submit(carrier: &SmppCarrier, queued: &QueuedMessage) -> CarrierAnswer {
    let answer = timeout(TEST_TIMEOUT, carrier.submit(queued)).await;
    answer.expect("an answer in time")
}

/// Sends a message as often as necessary, like the engine, and returns how often that was.
pub(crate) async fn submit_until_taken(carrier: &SmppCarrier, queued: &QueuedMessage) -> usize {
    let mut pauses = interval(CHECK_EVERY);
    for attempts in 1..2_000 {
        match submit(carrier, queued).await {
            CarrierAnswer::Taken(_) => return attempts,
            CarrierAnswer::NotNow(_) | CarrierAnswer::Unknown => pauses.tick().await,
            other => panic!("{:?} ended with {other:?}", queued.id),
        };
    }
    panic!("{:?} was never taken", queued.id);
}

/// Sends messages as often as necessary, as many at once as the carrier's window allows, and returns the number of
/// attempts.
pub(crate) async fn submit_all_until_taken(
    carrier: &Arc<SmppCarrier>,
    ids: RangeInclusive<u64>,
) -> usize {
    let window = Arc::new(Semaphore::new(carrier.window()));
    let mut tasks = JoinSet::new();
    for id in ids {
        let (carrier, window) = (carrier.clone(), window.clone());
        tasks.spawn(async move {
            let _permit = window.acquire_owned().await.expect("never closed");
            submit_until_taken(&carrier, &queued(id, "Hi")).await
        });
    }
    tasks.join_all().await.into_iter().sum()
}

/// The result for a message that was accepted in one part, under this ID.
pub(crate) fn taken(id: u64) -> CarrierAnswer {
    CarrierAnswer::Taken(vec![id.to_string()])
}
