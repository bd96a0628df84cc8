//! A scripted upstream, a carrier that is connected to it, and a sink that records receipts.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, CarrierRef, Claim, QueuedMessage, Receipt};
use domain::message::text::measure;
use domain::ports::{
    Carrier as _, DeliveredCopy, ForwardedText, HandsetSink, HandsetText, Health, ReceiptError,
    ReceiptSink,
};
use domain::{AccountId, Channel, Clock, MessageId, Msisdn, Originator, Priority, Timestamp};
use jiff::SignedDuration;
use outbound::upstream::TOKEN_HEADER;
use outbound::{Upstream, UpstreamSettings};
use testkit::TEST_TIMEOUT;
use testkit::receiver::{ReceivedRequest, Receiver, Reply, Request};

use crate::setup::now;

pub(crate) const TOKEN: &str = "sb_test_token";

/// A clock that does not move.
pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

/// Records receipts; `known` has the references of known parts, and `error` is the answer to every receipt if set.
#[derive(Default)]
pub(crate) struct RecordingSink {
    pub(crate) known: Mutex<HashSet<String>>,
    pub(crate) receipts: Mutex<Vec<Receipt>>,
    pub(crate) seen: Mutex<Vec<CarrierRef>>,
    pub(crate) texts: Mutex<Vec<([u8; 16], ForwardedText)>>,
    pub(crate) error: Mutex<Option<ReceiptError>>,
}

impl RecordingSink {
    fn check(&self) -> Result<(), ReceiptError> {
        let error = *self.error.lock().expect("not poisoned");
        error.map_or(Ok(()), Err)
    }

    pub(crate) fn add_known(&self, reference: &str) {
        let mut known = self.known.lock().expect("not poisoned");
        known.insert(reference.to_owned());
    }

    /// The receipts since the last call.
    pub(crate) fn take_receipts(&self) -> Vec<Receipt> {
        std::mem::take(&mut *self.receipts.lock().expect("not poisoned"))
    }

    /// The texts since the last call.
    pub(crate) fn take_texts(&self) -> Vec<([u8; 16], ForwardedText)> {
        std::mem::take(&mut *self.texts.lock().expect("not poisoned"))
    }

    pub(crate) fn take_seen(&self) -> Vec<CarrierRef> {
        std::mem::take(&mut *self.seen.lock().expect("not poisoned"))
    }
}

#[async_trait]
impl ReceiptSink for RecordingSink {
    async fn receive(&self, receipt: Receipt) -> Result<bool, ReceiptError> {
        self.check()?;
        let known = self.known.lock().expect("not poisoned");
        let is_known = known.contains(&receipt.of.reference);
        self.receipts.lock().expect("not poisoned").push(receipt);
        Ok(is_known)
    }

    async fn mark_seen(&self, of: CarrierRef, _: Timestamp) -> Result<(), ReceiptError> {
        self.check()?;
        self.seen.lock().expect("not poisoned").push(of);
        Ok(())
    }
}

#[async_trait]
impl HandsetSink for RecordingSink {
    async fn receive_once(
        &self,
        source: [u8; 16],
        text: ForwardedText,
    ) -> Result<(), ReceiptError> {
        self.check()?;
        let mut texts = self.texts.lock().expect("not poisoned");
        texts.push((source, text));
        Ok(())
    }

    async fn receive(&self, _: DeliveredCopy, _: HandsetText) -> Result<(), ReceiptError> {
        panic!("an upstream delivers whole messages");
    }

    fn confirm(&self, _: &[(i64, i64)]) {}

    fn end_session(&self, _: i64) {}
}

/// Everything that a test needs.
pub(crate) struct Fixture {
    pub(crate) server: Receiver,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) sink: Arc<RecordingSink>,
}

impl Fixture {
    /// An upstream with this script for messages. It answers probes.
    pub(crate) async fn start(
        script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::with(script, |_| {}).await
    }

    /// An upstream that gives this answer to every message.
    pub(crate) async fn answering(reply: Reply) -> Self {
        Self::start(with_healthy_probes(move |_| reply.clone())).await
    }

    /// A carrier with its own settings, after its first check of the upstream.
    pub(crate) async fn with(
        script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
        change: impl FnOnce(&mut UpstreamSettings),
    ) -> Self {
        let server = Receiver::builder().script(script).start();
        let mut settings = settings(&server.url("/api/"));
        change(&mut settings);
        let sink = Arc::new(RecordingSink::default());
        let upstream = Upstream::start(settings, sink.clone(), sink.clone(), Arc::new(FixedClock));
        let fixture = Self {
            server,
            upstream,
            sink,
        };
        wait_for("the first health check", || {
            fixture.requests_to("/api/health/ready") > 0
        })
        .await;
        fixture
    }

    pub(crate) async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer {
        self.upstream.submit(queued).await
    }

    pub(crate) fn note(&self) -> Option<String> {
        self.upstream.state().note
    }

    pub(crate) async fn wait_for_health(&self, health: Health) {
        let what = format!("{health:?}, but it is {:?}", self.upstream.state());
        wait_for(&what, || self.upstream.health() == health).await;
    }

    /// How often a path was requested.
    pub(crate) fn requests_to(&self, path: &str) -> usize {
        let received = self.server.received();
        received.iter().filter(|one| one.path == path).count()
    }

    /// The messages that were sent.
    pub(crate) fn posted(&self) -> Vec<ReceivedRequest> {
        let mut received = self.server.received();
        received.retain(|one| one.method == "POST");
        received
    }
}

/// Answers messages by this script, and `GET` requests like a healthy upstream that runs Switchboard.
pub(crate) fn with_healthy_probes(
    script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static {
    move |request| match request.method {
        "GET" => Reply::answer(200, "{}"),
        _ => script(request),
    }
}

pub(crate) fn settings(url: &str) -> UpstreamSettings {
    UpstreamSettings {
        name: "up".to_owned(),
        url: url.parse().expect("a URL"),
        token: TOKEN.to_owned(),
        header: TOKEN_HEADER,
        report_url: "https://sms.example".parse().expect("a URL"),
        window: 8,
        max_per_second: None,
        timeout: Duration::from_secs(10),
    }
}

pub(crate) fn id(number: u64) -> MessageId {
    MessageId::new(number).expect("in range")
}

/// Message 7 at its first attempt.
pub(crate) fn queued(channel: Channel) -> QueuedMessage {
    let text = if channel == Channel::Hlr { "" } else { "Hello" };
    QueuedMessage {
        id: id(7),
        account: AccountId::new(1).expect("in range"),
        channel,
        to: Msisdn::parse("+37120000001").expect("a number"),
        from: Originator::parse("Acme")
            .ok()
            .filter(|_| channel != Channel::Hlr),
        text: text.to_owned(),
        interactive: None,
        shape: measure("Hello").expect("a text"),
        udh: None,
        priority: Priority::Normal,
        test_mode: None,
        notice: false,
        expires_at: now() + SignedDuration::from_hours(72),
        claim: Claim {
            due_at: now(),
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
        unanswered_by: None,
        trace: None,
    }
}

/// Message 7 at its second attempt.
pub(crate) fn second_attempt() -> QueuedMessage {
    let mut queued = queued(Channel::Sms);
    queued.claim.attempt = 2;
    queued
}

/// Waits until a condition holds.
pub(crate) async fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let until = tokio::time::Instant::now() + TEST_TIMEOUT;
    while !condition() {
        assert!(
            tokio::time::Instant::now() < until,
            "timed out waiting for {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: between two looks at a state that has a deadline
    }
}
