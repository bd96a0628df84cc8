//! Another service with the same REST API, as a carrier for SMS, Viber messages and lookups.
//!
//! A message is sent with a REST request. Each message has its own callback URL here, to which the upstream sends its
//! delivery reports; they are passed on under our own ID. Error codes are the same on both sides and passed on
//! unchanged.
//!
//! An attempt whose answer is lost is repeated with the same `Idempotency-Key`, so an upstream of our own kind sends
//! the message once. No other carrier gets such a message. If the upstream answers that the key was used with another
//! body (because the remaining validity has changed), it has the message, but its ID is unknown; then the message gets a
//! reference of our own: `@` and our ID.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, CarrierRef, QueuedMessage, Receipt};
use domain::ports::{
    Carrier, CarrierState, HandsetSink, Health, ReceiptError, ReceiptSink, ReportResult,
};
use domain::{Clock, Code, MessageId, Outcome};
use tokio::task::AbortHandle;

use crate::health::HttpHealth;
use crate::pace::Pace;
use crate::proof::ProofKey;
use crate::texts;

mod client;
mod probe;
mod report;
mod reports;
mod request;
mod settings;
mod text;
mod verdict;

pub use reports::UpstreamReports;
pub use settings::{TOKEN_HEADER, UpstreamSettings};

use client::UpstreamClient;
use report::{Report, ReportContent};
use request::RequestBuilder;
use text::ReceivedText;
use verdict::{Verdict, answer_text, judge};

/// The prefix of our own references, used if the upstream's is unknown. No ID of an upstream starts with it.
const OWN_REFERENCE_PREFIX: char = '@';

const BAD_TOKEN: &str = "the upstream refuses the token; check carrier.token";

pub struct Upstream {
    settings: UpstreamSettings,
    requests: RequestBuilder,
    proofs: ProofKey,
    client: Arc<UpstreamClient>,
    health: Arc<HttpHealth>,
    pace: Pace,
    sink: Arc<dyn ReceiptSink>,
    handsets: Arc<dyn HandsetSink>,
    clock: Arc<dyn Clock>,
    is_stopped: AtomicBool,
    probing: AbortHandle,
}

impl Upstream {
    /// Starts the carrier, which passes receipts and texts to the sinks. Must be called inside a tokio runtime.
    pub fn start(
        settings: UpstreamSettings,
        sink: Arc<dyn ReceiptSink>,
        handsets: Arc<dyn HandsetSink>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let client = Arc::new(UpstreamClient::new(&settings));
        let health = Arc::new(HttpHealth::new(&settings.name, "the upstream"));
        let proofs = ProofKey::new(settings.token.as_bytes());
        let (probe_client, probe_health) = (client.clone(), health.clone());
        let probing = supervise::spawn("upstream-probe", move || {
            probe::run(probe_client.clone(), probe_health.clone())
        });
        Arc::new(Self {
            requests: RequestBuilder::new(&settings.name, &settings.report_url, proofs.clone()),
            proofs,
            client,
            health,
            pace: Pace::new(settings.max_per_second),
            settings,
            sink,
            handsets,
            clock,
            is_stopped: AtomicBool::new(false),
            probing: probing.abort_handle(),
        })
    }

    /// Asks the upstream once whether it accepts messages with these settings. The error says what is wrong.
    pub async fn try_connection(settings: &UpstreamSettings) -> Result<(), String> {
        probe::check(&UpstreamClient::new(settings)).await
    }

    pub fn settings(&self) -> &UpstreamSettings {
        &self.settings
    }

    /// Applies a verdict to the upstream's health and to the message.
    fn apply(&self, verdict: Verdict, queued: &QueuedMessage) -> CarrierAnswer {
        let code = verdict.code();
        match verdict {
            Verdict::Taken(references) => {
                self.health.record_success();
                return CarrierAnswer::Taken(references);
            }
            Verdict::TakenBefore => {
                self.health.record_success();
                return CarrierAnswer::Taken(vec![own_reference(queued.id)]);
            }
            Verdict::Declined => {
                self.health.record_answer();
                return CarrierAnswer::Declined(code);
            }
            Verdict::Blocked(why) => self.health.record_trouble(&why),
            Verdict::BadToken => self.health.set_down(BAD_TOKEN),
            Verdict::Throttled(pause) => {
                self.health.record_answer();
                self.health.slow_down(pause);
            }
            Verdict::Failed(why, pause) => {
                self.health.record_failure(&why);
                if let Some(pause) = pause {
                    self.health.slow_down(pause);
                }
            }
            Verdict::Unknown(why) => {
                self.health.record_failure(&why);
                return CarrierAnswer::Unknown;
            }
        }
        CarrierAnswer::NotNow(code)
    }

    /// Handles a report whose URL was verified.
    async fn take_report(&self, message: MessageId, body: &[u8]) -> ReportResult {
        let report = match Report::read(body) {
            Ok(report) => report,
            Err(error) => return ReportResult::NotAReport(error.to_string()),
        };
        if self.is_stopped.load(Ordering::Acquire) {
            return ReportResult::NotNow;
        }
        match self.pass_on(message, report).await {
            Ok(()) => ReportResult::Yes,
            Err(error) => {
                tracing::debug!(carrier = self.settings.name, %error, "a report could not be stored; the upstream will send it again");
                ReportResult::NotNow
            }
        }
    }

    /// Handles a text from a handset whose URL was verified.
    async fn take_text(&self, body: &[u8]) -> ReportResult {
        let name = &self.settings.name;
        let received = match ReceivedText::read(name, body) {
            Ok(received) => received,
            Err(error) => return ReportResult::NotAReport(error.to_string()),
        };
        let Some(text) = received.text else {
            return ReportResult::Yes;
        };
        if self.is_stopped.load(Ordering::Acquire) {
            return ReportResult::NotNow;
        }
        let identity = [received.id.as_str(), received.received.as_str()];
        let source = texts::source(name, &identity);
        match self.handsets.receive_once(source, text).await {
            Ok(()) => ReportResult::Yes,
            Err(_) => ReportResult::NotNow,
        }
    }

    /// Passes a report to the sink.
    ///
    /// The operator IDs in a lookup are those of the upstream. They are passed on, because services of the same kind
    /// share their reference data; otherwise country and network are still right.
    async fn pass_on(&self, message: MessageId, report: Report) -> Result<(), ReceiptError> {
        let (reference, network) = (report.reference, report.network);
        let receipt = |outcome, told| Receipt {
            of: CarrierRef {
                carrier: self.settings.name.clone(),
                reference,
            },
            to: None,
            outcome,
            report: told,
            network,
            at: self.clock.now(),
        };
        match report.content {
            ReportContent::InTransit => {}
            ReportContent::Ended(outcome) => {
                self.receive(message, receipt(outcome, None)).await?;
            }
            ReportContent::LookedUp(subscriber) => {
                let told = subscriber.payload(message);
                let outcome = subscriber.outcome();
                self.receive(message, receipt(outcome, Some(told))).await?;
            }
            // A message that was seen is also delivered. That report may still be on its way, and without a delivery
            // this one would be lost.
            ReportContent::Seen => {
                let delivered = receipt(Outcome::Delivered, None);
                let of = self.receive(message, delivered).await?;
                self.sink.mark_seen(of, self.clock.now()).await?;
            }
        }
        Ok(())
    }

    /// Passes a receipt to the sink and returns the reference that matched.
    ///
    /// If no part has the upstream's reference, either the answer with that reference is not stored yet, or it was lost
    /// and the message has a reference of our own. So the receipt is stored under both. The unused one is deleted with
    /// other unmatched receipts.
    async fn receive(
        &self,
        message: MessageId,
        mut receipt: Receipt,
    ) -> Result<CarrierRef, ReceiptError> {
        if !self.sink.receive(receipt.clone()).await? {
            let theirs = std::mem::replace(&mut receipt.of.reference, own_reference(message));
            if !self.sink.receive(receipt.clone()).await? {
                receipt.of.reference = theirs;
            }
        }
        Ok(receipt.of)
    }
}

/// The reference of a message whose ID at the upstream is unknown.
fn own_reference(message: MessageId) -> String {
    format!("{OWN_REFERENCE_PREFIX}{message}")
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.probing.abort();
    }
}

#[async_trait]
impl Carrier for Upstream {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn window(&self) -> usize {
        self.settings.window
    }

    fn health(&self) -> Health {
        self.health.health()
    }

    fn state(&self) -> CarrierState {
        self.health.state()
    }

    async fn ready(&self, handed: u32) {
        self.pace.ready(handed).await;
    }

    async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer {
        if self.health.is_down() {
            return CarrierAnswer::NotNow(Code::LINK_DOWN);
        }
        if !self.health.wait_out_pause().await {
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        for _ in 0..queued.shape.parts {
            self.pace.turn().await;
        }
        let now = self.clock.now();
        if queued.expires_at <= now {
            // It expired while it waited here, which its next attempt will find out.
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        let verdict = match self.client.post(self.requests.build(queued, now)).await {
            Ok(reply) => {
                if reply.status.is_client_error() {
                    let (carrier, answer) = (&self.settings.name, answer_text(&reply));
                    let trace_id = queued
                        .trace
                        .map(|trace| tracing::field::display(trace.trace_id()));
                    tracing::debug!(carrier, message_id = %queued.id, trace_id, answer, "a message was not accepted");
                }
                judge(&reply, queued.claim.attempt > 1)
            }
            Err(silence) if silence.is_unknown() => Verdict::Unknown(silence.to_string()),
            Err(silence) => Verdict::Failed(silence.to_string(), None),
        };
        self.apply(verdict, queued)
    }

    async fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.probing.abort();
    }
}
