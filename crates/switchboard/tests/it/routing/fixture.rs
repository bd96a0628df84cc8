//! The use cases on a real store, with fake carriers.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use domain::access::AccessLimits;
use domain::billing::Countries;
use domain::delivery::{Callback, CarrierAnswer, Delivery, QueuedMessage, Receipt};
use domain::oauth::ClientIdUrl;
use domain::ports::{
    CallbackSender, Carrier, CarrierState, ClientDocuments, ForbiddenUrl, Health, ImageGuard,
    Machine, MachineState, NodeInfo, NotificationSender, SignedPost, UnusableDocument,
    UnusableImage, UrlGuard,
};
use domain::{
    Access, AccountId, AllowList, CallbackUrl, Channel, Clock, Code, ImageUrl, MessageId,
    MessageState, Outcome, Permissions, Timestamp,
};
use engine::clock::SystemClock;
use engine::sending::routing::{CarrierFacts, Rule};
use engine::sending::submit::{SmsInput, SubmitError, To};
use engine::{CarrierHandle, Engine, GrantSettings, Guards, Outside, Plan, Settings};
use jiff::SignedDuration;
use testkit::TEST_TIMEOUT;
use tokio::sync::Semaphore;

use crate::database::{Database, new_account};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A carrier whose health and answers the test sets.
pub(super) struct FakeCarrier {
    name: String,
    window: usize,
    health: AtomicU8,
    answer: Mutex<CarrierAnswer>,
    /// The messages that it got.
    pub(super) submitted: Mutex<Vec<MessageId>>,
    /// How many more messages it answers, if that is limited.
    answers_left: Option<Semaphore>,
    pub(super) stopped: Mutex<bool>,
}

impl FakeCarrier {
    pub(super) fn new(name: &str) -> Arc<Self> {
        Self::with_window(name, 100)
    }

    pub(super) fn with_window(name: &str, window: usize) -> Arc<Self> {
        Self::build(name, window, None)
    }

    /// Has a window of one message, and answers only as many as [`Self::allow_answers`] allows.
    pub(super) fn with_limited_answers(name: &str) -> Arc<Self> {
        Self::build(name, 1, Some(Semaphore::new(0)))
    }

    pub(super) fn allow_answers(&self, count: usize) {
        let answers_left = self.answers_left.as_ref().expect("its answers are limited");
        answers_left.add_permits(count);
    }

    fn build(name: &str, window: usize, answers_left: Option<Semaphore>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            window,
            answers_left,
            health: AtomicU8::new(0),
            answer: Mutex::new(CarrierAnswer::Taken(Vec::new())),
            submitted: Mutex::default(),
            stopped: Mutex::default(),
        })
    }

    pub(super) fn set_health(&self, health: Health) {
        let number = match health {
            Health::Up => 0,
            Health::Strained => 1,
            Health::Down => 2,
        };
        self.health.store(number, Ordering::Release);
    }

    /// Sets the answer to all further messages; by default it accepts them.
    pub(super) fn set_answer(&self, answer: CarrierAnswer) {
        *self.answer.lock().expect("no holder panics") = answer;
    }

    pub(super) fn submitted(&self) -> Vec<MessageId> {
        self.submitted.lock().expect("no holder panics").clone()
    }

    pub(super) fn count(&self) -> usize {
        self.submitted.lock().expect("no holder panics").len()
    }
}

#[async_trait]
impl Carrier for FakeCarrier {
    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> usize {
        self.window
    }

    fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            0 => Health::Up,
            1 => Health::Strained,
            _ => Health::Down,
        }
    }

    fn state(&self) -> CarrierState {
        CarrierState {
            health: self.health(),
            links_up: 1,
            links: 1,
            links_total: 1,
            note: None,
        }
    }

    async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer {
        self.submitted
            .lock()
            .expect("no holder panics")
            .push(queued.id);
        if let Some(answers_left) = &self.answers_left {
            answers_left.acquire().await.expect("never closed").forget();
        }
        match self.answer.lock().expect("no holder panics").clone() {
            CarrierAnswer::Taken(_) => CarrierAnswer::Taken(vec![queued.id.to_string()]),
            other => other,
        }
    }

    async fn stop(&self) {
        *self.stopped.lock().expect("no holder panics") = true;
    }
}

/// Allows all addresses; no test here makes outgoing calls.
struct AllowAll;

#[async_trait]
impl UrlGuard for AllowAll {
    async fn check(&self, _: AccountId, _url: &CallbackUrl) -> Result<(), ForbiddenUrl> {
        Ok(())
    }
}

#[async_trait]
impl ImageGuard for AllowAll {
    async fn check(&self, _: AccountId, _url: &ImageUrl) -> Result<(), UnusableImage> {
        Ok(())
    }
}

#[async_trait]
impl ClientDocuments for AllowAll {
    async fn fetch(&self, _: IpAddr, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        unreachable!("no client here has a document")
    }
}

#[async_trait]
impl CallbackSender for AllowAll {
    async fn deliver(&self, _callback: &Callback, _secrets: &[&str], _now: Timestamp) -> Delivery {
        unreachable!("no message here asks for a report")
    }
}

impl Machine for AllowAll {
    fn state(&self) -> MachineState {
        MachineState::default()
    }
}

#[async_trait]
impl NotificationSender for AllowAll {
    async fn post(&self, _post: SignedPost<'_>, _now: Timestamp) -> Result<(), String> {
        unreachable!("no notification is configured here")
    }
}

/// The system clock, moved ahead by the test.
#[derive(Default)]
pub(super) struct TestClock {
    ahead_s: AtomicI64,
}

impl TestClock {
    pub(super) fn advance(&self, time: SignedDuration) {
        self.ahead_s.fetch_add(time.as_secs(), Ordering::AcqRel);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + SignedDuration::from_secs(self.ahead_s.load(Ordering::Acquire))
    }
}

/// The use cases, with two accounts that have a balance.
pub(super) struct Fixture {
    pub(super) engine: Engine,
    pub(super) clock: Arc<TestClock>,
    pub(super) database: Database,
    account: AccountId,
    other_account: AccountId,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SendOptions {
    pub(super) from_other_account: bool,
    pub(super) expire_in: Option<i64>,
    /// Seconds from now.
    pub(super) scheduled_in: Option<i64>,
}

impl Fixture {
    /// Starts on an empty SQLite database; at most `held` messages wait in memory.
    pub(super) async fn open(held: usize) -> Self {
        let database = Database::create();
        let store = database.open().await;
        let created = store.create_account(&new_account("acme")).await;
        let account = created.expect("stored").expect("a new name");
        let created = store.create_account(&new_account("other")).await;
        let other_account = created.expect("stored").expect("a new name");
        let settings = Settings {
            node_info: NodeInfo {
                roles: vec!["api".to_owned(), "worker".to_owned()],
                works: true,
                version: "1.2.3".to_owned(),
                host: "machine".to_owned(),
                listen: "127.0.0.1:8080".to_owned(),
            },
            accept_queue: 1000,
            accept_batch: 100,
            held,
            park_callbacks_after: None,
            callback_tries: 64,
            keep_messages: None,
            keep_texts: None,
            keep_ported: SignedDuration::from_hours(24),
            incomplete_after: jiff::SignedDuration::from_hours(24),
            words: Arc::new(domain::inbound::words::Words::new(&[], &[], &[])),
            fold_ledger_after: None,
            metrics_by_account: false,
            notify: Vec::new(),
            pin_from: domain::Originator::parse("Acme").expect("a name"),
            grants: GrantSettings {
                issuer: "http://auth.example".to_owned(),
                resource: "http://mcp.example/mcp".to_owned(),
                code_lifetime: SignedDuration::from_secs(60),
                access_lifetime: SignedDuration::from_hours(1),
                refresh_lifetime: SignedDuration::from_hours(24),
                grant_lifetime: SignedDuration::from_hours(24 * 180),
            },
        };
        let guards = Guards {
            urls: Arc::new(AllowAll),
            images: Arc::new(AllowAll),
            clients: Arc::new(AllowAll),
            mailer: None,
        };
        let outside = Outside {
            callbacks: Arc::new(AllowAll),
            machine: Arc::new(AllowAll),
            notifications: Arc::new(AllowAll),
            mailer: None,
        };
        let clock = Arc::new(TestClock::default());
        let engine = Engine::start(store, clock.clone(), guards, Some(outside), settings).await;
        Self {
            engine: engine.expect("it starts"),
            clock,
            database,
            account,
            other_account,
        }
    }

    /// Replaces the carriers. Without rules, each message may go by all of them, in order.
    pub(super) async fn set_carriers(&self, carriers: &[&Arc<FakeCarrier>], rules: Vec<Rule>) {
        let facts = |carrier: &&Arc<FakeCarrier>| CarrierFacts {
            name: carrier.name().to_owned(),
            channels: vec![Channel::Sms],
            costs: None,
            is_simulated: false,
        };
        let plan = Plan {
            carriers: carriers.iter().map(facts).collect(),
            rules,
        };
        let handles = carriers.iter().map(|carrier| CarrierHandle {
            carrier: Arc::clone(carrier) as Arc<dyn Carrier>,
            kind: "fake".to_owned(),
        });
        let result = self.engine.equip(plan, handles.collect()).await;
        result.expect("the accounts of rules can be read");
    }

    pub(super) async fn try_send(&self, to: &str) -> Result<MessageId, SubmitError> {
        self.try_send_as(to, SendOptions::default()).await
    }

    pub(super) async fn send_as(&self, to: &str, options: SendOptions) -> MessageId {
        self.try_send_as(to, options).await.expect("accepted")
    }

    async fn try_send_as(&self, to: &str, options: SendOptions) -> Result<MessageId, SubmitError> {
        let scheduled = options
            .scheduled_in
            .map(|seconds| (self.clock.now() + SignedDuration::from_secs(seconds)).to_string());
        let access = Access {
            name: "test".to_owned(),
            account: if options.from_other_account {
                self.other_account
            } else {
                self.account
            },
            account_name: "acme".to_owned(),
            suspended: false,
            countries: Countries::default(),
            approved_senders_only: false,
            requests_per_second: 0,
            permissions: Permissions::all(),
            allow: AllowList::default(),
            expires: None,
            grant_cap: None,
            limits: AccessLimits::default(),
        };
        let input = SmsInput {
            to: To::Text(to.into()),
            from: "Acme".into(),
            message: "Hello".into(),
            dlr_url: None,
            priority: None,
            scheduled: scheduled.as_deref().map(Into::into),
            udh: None,
            coding: None,
            test_mode: None,
            expire_in: options.expire_in,
            correct_by: None,
        };
        let receipt = self.engine.submit.send(&access, input, None, None).await?;
        Ok(receipt.first)
    }

    pub(super) async fn send(&self, to: &str) -> MessageId {
        self.try_send(to).await.expect("accepted")
    }

    pub(super) async fn state(&self, id: MessageId) -> MessageState {
        let found = self.engine.messages.find(self.account, id).await;
        found.expect("readable").expect("it is there").state
    }

    /// Waits until a message has ended, and returns its outcome.
    pub(super) async fn outcome(&self, id: MessageId) -> Outcome {
        let ended = wait_for("the message has ended", async || {
            match self.state(id).await {
                MessageState::Ended { outcome, .. } => Some(outcome),
                _ => None,
            }
        });
        ended.await
    }

    /// Sends the receipt of a delivered message.
    pub(super) async fn deliver(&self, carrier: &str, id: MessageId) {
        let receipts = self.engine.receipts().expect("this process works");
        let receipt = Receipt {
            of: domain::delivery::CarrierRef {
                carrier: carrier.to_owned(),
                reference: id.to_string(),
            },
            to: None,
            outcome: Outcome::Delivered,
            report: None,
            network: None,
            at: SystemClock.now(),
        };
        receipts.receive(receipt).await.expect("stored");
    }
}

/// Polls until there is a value.
pub(super) async fn wait_for<T>(what: &str, poll: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    let mut interval = tokio::time::interval(POLL_INTERVAL);
    loop {
        interval.tick().await;
        if let Some(found) = poll().await {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out waiting for: {what}");
    }
}

pub(super) fn code(number: u16) -> Code {
    Code::new(number).expect("in the catalogue")
}
