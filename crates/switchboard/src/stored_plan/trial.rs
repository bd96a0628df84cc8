//! Test messages: one message by one carrier, and its report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, CarrierRef, Claim, QueuedMessage, Receipt};
use domain::message::text::measure;
use domain::ports::{
    AwaitedReport, DeliveredCopy, DuePoll, ForwardedText, HandsetSink, HandsetText, ReceiptError,
    ReceiptSink, ReportPolls, Store, StoreError,
};
use domain::{AccountId, Channel, Clock, MessageId, Originator, Priority, Timestamp};
use engine::Catalogues;
use engine::catalogue::plans::{SentTest, TestAnswer, TestInput, TestReport};
use engine::clock::SystemClock;
use jiff::SignedDuration;
use outbound::http::{HttpPorts, PROOF_PURPOSE};
use outbound::{HttpCarrier, Upstream};

use super::addresses::base_url;
use crate::config::Config;
use crate::config::carriers::Carrier;
use crate::outside;

const DEFAULT_TEXT: &str = "Test message";
/// Of so many unmatched receipts, the newest first, the message's own is looked for.
const MAX_UNMATCHED: u32 = 1000;
/// How long the message is valid.
const VALIDITY: SignedDuration = SignedDuration::from_mins(10);

/// A test message before it is sent. It belongs to no account and costs nothing here.
pub(crate) struct Trial {
    pub(crate) message: QueuedMessage,
    carrier: Carrier,
}

/// Whether a carrier of this kind can send a test message.
pub(crate) const fn is_testable(carrier: &Carrier) -> bool {
    matches!(carrier, Carrier::Http(_) | Carrier::Upstream(_))
}

impl Trial {
    pub(crate) async fn new(
        config: &Config,
        store: &dyn Store,
        carriers: &[Carrier],
        test: &TestInput,
    ) -> anyhow::Result<Self> {
        let name = &test.carrier;
        let carrier = carriers.iter().find(|carrier| carrier.name() == name);
        let carrier = carrier.with_context(|| {
            let known: Vec<&str> = carriers.iter().map(Carrier::name).collect();
            format!(
                "there is no carrier '{name}'; there are {}",
                known.join(", ")
            )
        })?;
        let id = store.reserve_ids(1).await?;
        Ok(Self {
            message: message(config, carrier, test, id, SystemClock.now())?,
            carrier: carrier.clone(),
        })
    }

    /// Gives the message to the carrier, and waits for the answer.
    pub(crate) async fn send(
        &self,
        config: &Config,
        store: &Arc<dyn Store>,
        catalogues: Arc<Catalogues>,
    ) -> anyhow::Result<SentTest> {
        let carrier = self.start(config, store, catalogues).await?;
        let began = Instant::now();
        let answer = carrier.submit(&self.message).await;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Why it is not up.
        let note = carrier.state().note;
        carrier.stop().await;
        let id = self.message.id;
        let note = note.map_or_else(String::new, |note| format!(" ({note})"));
        let answer = match answer {
            CarrierAnswer::Taken(references) => TestAnswer::Taken { references },
            CarrierAnswer::PartlyTaken { references, code } => TestAnswer::Failed(format!(
                "the carrier took {} parts and refused the others: {code}",
                references.len()
            )),
            CarrierAnswer::Answered(subscriber) => TestAnswer::Answered(subscriber.payload(id)),
            CarrierAnswer::Unknown => TestAnswer::Failed(format!(
                "the carrier did not answer, and may have the message{note}"
            )),
            CarrierAnswer::NotNow(code) => {
                TestAnswer::Failed(format!("the carrier cannot take it now: {code}{note}"))
            }
            CarrierAnswer::Declined(code) | CarrierAnswer::Refused(code) => {
                TestAnswer::Failed(format!("the carrier refuses it: {code}{note}"))
            }
        };
        Ok(SentTest {
            id,
            took_ms,
            answer,
        })
    }

    /// Starts the carrier for this message only.
    async fn start(
        &self,
        config: &Config,
        store: &Arc<dyn Store>,
        catalogues: Arc<Catalogues>,
    ) -> anyhow::Result<Arc<dyn domain::ports::Carrier>> {
        let base_url = base_url(config, &**store).await?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ok(match &self.carrier {
            Carrier::Http(settings) => {
                let keys = store.derived_keys(PROOF_PURPOSE);
                let ports = HttpPorts {
                    receipts: Arc::new(Nowhere),
                    handsets: Arc::new(Nowhere),
                    numbers: outside::number_locator(catalogues),
                    polls: Arc::new(PolledByTheService(store.clone())),
                    clock,
                };
                HttpCarrier::start(settings.settings(&base_url, keys)?, ports)
            }
            Carrier::Upstream(settings) => {
                let settings = settings.settings(&base_url)?;
                Upstream::start(settings, Arc::new(Nowhere), Arc::new(Nowhere), clock)
            }
            Carrier::Smpp(_) | Carrier::Simulator(_) => bail!(
                "only carriers of the kinds http and upstream can be tested so; `switchboard config check --connect` connects \
                 to all others"
            ),
        })
    }
}

fn message(
    config: &Config,
    carrier: &Carrier,
    test: &TestInput,
    id: MessageId,
    now: Timestamp,
) -> anyhow::Result<QueuedMessage> {
    let channel = carrier.channels().into_iter().next();
    let channel = channel.context("the carrier has no channel")?;
    let is_lookup = channel == Channel::Hlr;
    let words = test.text.as_deref().unwrap_or(DEFAULT_TEXT);
    let from = match &test.from {
        Some(from) => Originator::parse(from).context("the sender")?,
        None => config.pin_from()?,
    };
    Ok(QueuedMessage {
        id,
        account: AccountId::new(1).context("an account has the number 1")?,
        channel,
        to: test.to,
        from: (!is_lookup).then_some(from),
        shape: measure(words).context("the text")?,
        text: if is_lookup {
            String::new()
        } else {
            words.to_owned()
        },
        interactive: None,
        udh: None,
        priority: Priority::High,
        test_mode: None,
        notice: true,
        expires_at: now + VALIDITY,
        claim: Claim {
            due_at: now,
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
        unanswered_by: None,
        trace: None,
    })
}

/// The report about a test message, once the running service has stored it. The message is not in the database, so its
/// report stays unmatched.
pub(crate) async fn find_report(
    store: &dyn Store,
    carrier: &str,
    references: &[String],
) -> Result<Option<TestReport>, StoreError> {
    let unmatched = store.list_unmatched(MAX_UNMATCHED).await?;
    let own = unmatched
        .iter()
        .find(|one| one.carrier == carrier && references.contains(&one.reference));
    Ok(own.and_then(|own| {
        Some(TestReport {
            outcome: own.outcome?,
            at: own.at,
        })
    }))
}

/// Leaves polling to the running service.
struct PolledByTheService(Arc<dyn Store>);

#[async_trait]
impl ReportPolls for PolledByTheService {
    async fn add(&self, awaited: AwaitedReport) -> Result<(), ReceiptError> {
        let added = self.0.add_polls(&[awaited]).await;
        added.map_err(|_| ReceiptError::Store)
    }

    async fn claim(&self, _: &str, _: Duration, _: u32) -> Result<Vec<DuePoll>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: &str, _: &[MessageId]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Takes nothing: whatever arrives in this process arrives again at the running service.
struct Nowhere;

#[async_trait]
impl ReceiptSink for Nowhere {
    async fn receive(&self, _: Receipt) -> Result<bool, ReceiptError> {
        Err(ReceiptError::Stopping)
    }

    async fn mark_seen(&self, _: CarrierRef, _: Timestamp) -> Result<(), ReceiptError> {
        Err(ReceiptError::Stopping)
    }
}

#[async_trait]
impl HandsetSink for Nowhere {
    async fn receive_once(&self, _: [u8; 16], _: ForwardedText) -> Result<(), ReceiptError> {
        Err(ReceiptError::Stopping)
    }

    async fn receive(&self, _: DeliveredCopy, _: HandsetText) -> Result<(), ReceiptError> {
        Err(ReceiptError::Stopping)
    }

    fn confirm(&self, _: &[(i64, i64)]) {}

    fn end_session(&self, _: i64) {}
}
