//! A provider with an HTTP API of its own, described by configuration, as a carrier for SMS, Viber messages and
//! lookups.
//!
//! A message is sent with one request, built from a template. Each message has its own URL here, to which the provider
//! sends its reports. The URL names the message, so the message's reference is its own ID after `@`, whether or not the
//! provider's answer has an ID. Reports may repeat, and may come before the answer.
//!
//! A request whose answer is lost may have been acted on. It is sent again with the same content, at most
//! `unknown_tries` times in all; then the message counts as taken and waits for its report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, CarrierRef, QueuedMessage, Receipt};
use domain::ports::{
    Carrier, CarrierPost, CarrierState, HandsetSink, Health, NumberLocator, ReceiptError,
    ReceiptSink, ReportResult,
};
use domain::{Channel, Clock, Code, MessageId, Outcome};
use http::Uri;
use tokio::task::AbortHandle;

use crate::health::HttpHealth;
use crate::pace::Pace;

mod client;
mod fields;
mod inbound;
mod links;
mod lookup;
mod probe;
mod report;
mod reports;
mod request;
mod response;
mod rule;
#[cfg(test)]
mod samples;
mod settings;
mod signature;
mod template;

pub use fields::Pointer;
pub use inbound::{InboundRecipient, InboundRules};
pub use links::CarrierLinks;
pub use lookup::{LookupRules, NetworkRules};
pub use report::ReportRules;
pub use reports::HttpReports;
pub use request::{RequestDescription, RequestRules};
pub use response::{ResponseRules, Statuses};
pub use rule::{CodeTable, RuleError};
pub use settings::{HttpSettings, PROOF_PURPOSE};
pub use signature::{SignatureRules, SignatureScheme};
pub use template::{Secrets, Template, TemplateError};

use client::{NoAnswer, ProviderClient};
use fields::Fields;
use report::ReportContent;
use response::{Answer, Verdict, shown};
use template::Values;

/// The prefix of our references.
const REFERENCE_PREFIX: char = '@';
/// The pause if the provider asks for one without a duration.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// Where a carrier passes what the provider sends.
pub struct HttpPorts {
    pub receipts: Arc<dyn ReceiptSink>,
    pub handsets: Arc<dyn HandsetSink>,
    pub numbers: Arc<dyn NumberLocator>,
    pub clock: Arc<dyn Clock>,
}

pub struct HttpCarrier {
    settings: HttpSettings,
    links: CarrierLinks,
    client: Arc<ProviderClient>,
    health: Arc<HttpHealth>,
    pace: Pace,
    ports: HttpPorts,
    /// Texts that are just being stored, by their hash.
    is_stopped: AtomicBool,
    probing: AbortHandle,
}

impl HttpCarrier {
    /// Starts the carrier. Must be called inside a tokio runtime.
    pub fn start(settings: HttpSettings, ports: HttpPorts) -> Arc<Self> {
        let client = Arc::new(ProviderClient::new(&settings));
        let health = Arc::new(HttpHealth::new(&settings.name, "the provider"));
        let host = host(&settings);
        let (probe_client, probe_health) = (client.clone(), health.clone());
        let probing = supervise::spawn("http-carrier-probe", move || {
            probe::run(probe_client.clone(), probe_health.clone(), host.clone())
        });
        Arc::new(Self {
            links: CarrierLinks::new(&settings.name, &settings.report_url, &settings.proof_keys),
            client,
            health,
            pace: Pace::new(settings.max_per_second),
            settings,
            ports,
            is_stopped: AtomicBool::new(false),
            probing: probing.abort_handle(),
        })
    }

    /// Connects once to the provider and sends nothing. The error says what is wrong.
    pub async fn try_connection(settings: &HttpSettings) -> Result<(), String> {
        let client = ProviderClient::new(settings);
        match host(settings) {
            Some(host) => client.connect(&host).await,
            None => Ok(()),
        }
    }

    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    /// Applies an answer to the provider's health and to the message.
    fn apply(&self, answer: &Answer, queued: &QueuedMessage) -> CarrierAnswer {
        let carrier = &self.settings.name;
        match self.settings.response.judge(answer) {
            Verdict::Taken(theirs) => {
                self.health.record_success();
                let theirs = theirs.as_deref().map(shown);
                tracing::debug!(carrier, message_id = %queued.id, provider_id = theirs, "the provider took a message");
                if let Some(found) = self.looked_up(answer.fields.as_ref(), queued) {
                    return found;
                }
                CarrierAnswer::Taken(vec![reference(queued.id)])
            }
            Verdict::Throttled => {
                self.health.record_answer();
                self.health
                    .slow_down(answer.retry_after.unwrap_or(DEFAULT_PAUSE));
                CarrierAnswer::NotNow(Code::THROTTLED)
            }
            Verdict::Failed(why) => {
                self.health.record_failure(&why);
                if let Some(pause) = answer.retry_after {
                    self.health.slow_down(pause);
                }
                CarrierAnswer::NotNow(Code::LINK_DOWN)
            }
            Verdict::Denied(why) => {
                self.health.set_down(&why);
                CarrierAnswer::NotNow(Code::LINK_DOWN)
            }
            Verdict::Refused { code, theirs } => {
                self.health.record_answer();
                let status = answer.status.as_u16();
                tracing::debug!(carrier, message_id = %queued.id, status, provider_code = theirs, %code, "the provider refused a message");
                CarrierAnswer::Declined(code)
            }
        }
    }

    /// The result of a lookup, if the answer has it.
    fn looked_up(&self, fields: Option<&Fields>, queued: &QueuedMessage) -> Option<CarrierAnswer> {
        let rules = self.settings.lookup.as_ref()?;
        if queued.channel != Channel::Hlr {
            return None;
        }
        let found = rules.read(fields?)?;
        let subscriber = found.subscriber(Some(&queued.to), &*self.ports.numbers);
        Some(CarrierAnswer::Answered(subscriber))
    }

    /// What a request without an answer means for the message.
    fn unanswered(&self, why: &NoAnswer, queued: &QueuedMessage) -> CarrierAnswer {
        self.health.record_failure(&why.to_string());
        if !why.is_unknown() {
            return CarrierAnswer::NotNow(Code::LINK_DOWN);
        }
        let tries = queued.unknown_tries.saturating_add(1);
        if tries < self.settings.unknown_tries {
            return CarrierAnswer::Unknown;
        }
        tracing::warn!(
            carrier = self.settings.name,
            message_id = %queued.id,
            trace_id = queued.trace.map(|trace| tracing::field::display(trace.trace_id())),
            tries,
            %why,
            "no answer to a message; it is not sent again and waits for a report"
        );
        CarrierAnswer::Taken(vec![reference(queued.id)])
    }

    /// Handles a report about a message, if the URL proves that it may come.
    async fn take_report(
        &self,
        message: MessageId,
        proof: &str,
        post: CarrierPost<'_>,
    ) -> ReportResult {
        let is_proven = self.links.admits_report(message, proof)
            && self.is_signed(|| self.links.report_url(message), post);
        if !is_proven {
            return ReportResult::Unproven;
        }
        let Some(fields) = Fields::read(post.header("content-type"), post.body) else {
            return not_a_report("The body is neither JSON nor a form.");
        };
        if self.is_stopped.load(Ordering::Acquire) {
            return ReportResult::NotNow;
        }
        let stored = match self
            .settings
            .report
            .as_ref()
            .and_then(|it| it.read(&fields))
        {
            Some(content) => {
                let rules = self.settings.report.as_ref();
                let theirs = rules.and_then(|it| fields.text(it.id.as_ref()?));
                let theirs = theirs.as_deref().map(shown);
                tracing::debug!(carrier = self.settings.name, message_id = %message, provider_id = theirs, "the provider reported");
                self.pass_on(message, content).await
            }
            None => match self
                .settings
                .lookup
                .as_ref()
                .and_then(|it| it.read(&fields))
            {
                Some(found) => {
                    let subscriber = found.subscriber(None, &*self.ports.numbers);
                    let report = subscriber.payload(message);
                    self.receive(message, subscriber.outcome(), Some(report))
                        .await
                }
                None => return not_a_report("The body has no state where this carrier has one."),
            },
        };
        self.result(stored)
    }

    async fn pass_on(
        &self,
        message: MessageId,
        content: ReportContent,
    ) -> Result<(), ReceiptError> {
        match content {
            ReportContent::InTransit => Ok(()),
            ReportContent::Ended(outcome) => self.receive(message, outcome, None).await,
            // A message that was seen is also delivered, and that report may never come.
            ReportContent::Seen => {
                self.receive(message, Outcome::Delivered, None).await?;
                let of = self.carrier_ref(message);
                self.ports
                    .receipts
                    .mark_seen(of, self.ports.clock.now())
                    .await
            }
        }
    }

    /// Stores a receipt. One that comes before the answer is stored until the answer is.
    async fn receive(
        &self,
        message: MessageId,
        outcome: Outcome,
        report: Option<String>,
    ) -> Result<(), ReceiptError> {
        let receipt = Receipt {
            of: self.carrier_ref(message),
            to: None,
            outcome,
            report,
            at: self.ports.clock.now(),
        };
        self.ports.receipts.receive(receipt).await.map(drop)
    }

    fn carrier_ref(&self, message: MessageId) -> CarrierRef {
        CarrierRef {
            carrier: self.settings.name.clone(),
            reference: reference(message),
        }
    }

    /// Handles a text from a handset, if the URL proves that it may come.
    async fn take_text(&self, proof: &str, post: CarrierPost<'_>) -> ReportResult {
        let is_proven =
            self.links.admits_inbound(proof) && self.is_signed(|| self.links.inbound_url(), post);
        let Some(rules) = self.settings.inbound.as_ref().filter(|_| is_proven) else {
            return ReportResult::Unproven;
        };
        let Some(fields) = Fields::read(post.header("content-type"), post.body) else {
            return not_a_report("The body is neither JSON nor a form.");
        };
        if self.is_stopped.load(Ordering::Acquire) {
            return ReportResult::NotNow;
        }
        let shared = self.shared_report(&fields);
        if let Some((message, content @ (ReportContent::Ended(_) | ReportContent::Seen))) = shared {
            return self.result(self.pass_on(message, content).await);
        }
        let text = match rules.read(&self.settings.name, &fields) {
            Ok(text) => text,
            // About a message that is still on its way.
            Err(_) if shared.is_some() => return ReportResult::Yes,
            Err(error) => return not_a_report(&error.to_string()),
        };
        let source = rules.source(&self.settings.name, &fields);
        let source = source.unwrap_or_else(|| {
            // Without an ID each one is another text.
            let mut random = [0; 16];
            getrandom::fill(&mut random).expect("the operating system gives random bytes");
            random
        });
        let stored = self.ports.handsets.receive_once(source, text).await;
        match self.result(stored) {
            ReportResult::Yes => ReportResult::TextStored,
            other => other,
        }
    }

    /// What the provider reports about a message by the URL for inbound messages, if this carrier's does.
    fn shared_report(&self, fields: &Fields) -> Option<(MessageId, ReportContent)> {
        let rules = self.settings.report.as_ref().filter(|it| it.is_shared)?;
        let message = fields.text(rules.id.as_ref()?)?.parse().ok()?;
        Some((message, rules.read(fields)?))
    }

    fn is_signed(&self, url: impl FnOnce() -> String, post: CarrierPost<'_>) -> bool {
        let rules = self.settings.signature.as_ref();
        rules.is_none_or(|rules| rules.verifies(&url(), post))
    }

    fn result(&self, stored: Result<(), ReceiptError>) -> ReportResult {
        match stored {
            Ok(()) => ReportResult::Yes,
            Err(error) => {
                tracing::debug!(carrier = self.settings.name, %error, "a report or a text could not be stored; the provider will send it again");
                ReportResult::NotNow
            }
        }
    }
}

fn not_a_report(why: &str) -> ReportResult {
    ReportResult::NotAReport(why.to_owned())
}

/// The reference of a message.
fn reference(message: MessageId) -> String {
    format!("{REFERENCE_PREFIX}{message}")
}

/// Where the requests go; `None` if that is no URL, which a checked description rules out.
fn host(settings: &HttpSettings) -> Option<Uri> {
    settings.request.host()
}

impl Drop for HttpCarrier {
    fn drop(&mut self) {
        self.probing.abort();
    }
}

#[async_trait]
impl Carrier for HttpCarrier {
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
        if !self.settings.request.can_carry(queued) {
            return CarrierAnswer::Declined(Code::NO_ROUTE);
        }
        if self.health.is_down() {
            return CarrierAnswer::NotNow(Code::LINK_DOWN);
        }
        if !self.health.wait_out_pause().await {
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        for _ in 0..queued.shape.parts {
            self.pace.turn().await;
        }
        let now = self.ports.clock.now();
        if queued.expires_at <= now {
            // It expired while it waited here, which its next attempt will find out.
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        let report_url = self.links.report_url(queued.id);
        let values = Values {
            queued,
            report_url: &report_url,
            expires_in: queued.expires_at.duration_since(now).as_secs().max(1),
        };
        let Ok(request) = self.settings.request.build(&values) else {
            return CarrierAnswer::Declined(Code::INTERNAL);
        };
        match self.client.send(request).await {
            Ok(answer) => self.apply(&answer, queued),
            Err(why) => self.unanswered(&why, queued),
        }
    }

    async fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.probing.abort();
    }
}
