//! A provider with an HTTP API of its own, described by configuration, as a carrier for SMS, Viber messages and
//! lookups.
//!
//! A message is sent with one request, built from a template. Each message has its own URL here, to which the provider
//! sends its reports. The URL names the message, so the message's reference is its own ID after `@`, whether or not the
//! provider's answer has an ID. Reports may repeat, and may come before the answer.
//!
//! A request whose answer is lost may have been acted on. It is sent again with the same content, at most
//! `unknown_tries` times in all; then the message counts as taken and waits for its report.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::ports::{
    Carrier, CarrierState, HandsetSink, Health, NumberLocator, ReceiptSink, ReportPolls,
};
use domain::{Channel, Clock, Code};
use http::Uri;
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::health::HttpHealth;
use crate::pace::Pace;

mod batch;
mod client;
mod fields;
mod inbound;
mod incoming;
mod links;
mod lookup;
mod poll;
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
mod signing;
mod template;
mod values;

pub use batch::BatchRules;
pub use fields::Pointer;
pub use inbound::{InboundRecipient, InboundRules};
pub use links::CarrierLinks;
pub use lookup::{LookupRules, NetworkRules};
pub use poll::PollRules;
pub use report::ReportRules;
pub use reports::HttpReports;
pub use request::{RequestDescription, RequestRules};
pub use response::{ResponseRules, Statuses};
pub use rule::{CodeTable, RuleError};
pub use settings::{HttpSettings, PROOF_PURPOSE};
pub use signature::{HmacEncoding, HmacHash, SignatureRules, SignatureScheme};
pub use signing::SigningDescription;
pub use template::{Secrets, Template, TemplateError};

use batch::Batches;
use client::{NoAnswer, ProviderClient};
use fields::Fields;
use response::{Answer, Verdict, shown};
use values::{MessageValues, Subject, Values};

/// The pause if the provider asks for one without a duration.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// Where a carrier passes what the provider sends.
pub struct HttpPorts {
    pub receipts: Arc<dyn ReceiptSink>,
    pub handsets: Arc<dyn HandsetSink>,
    pub numbers: Arc<dyn NumberLocator>,
    pub polls: Arc<dyn ReportPolls>,
    pub clock: Arc<dyn Clock>,
}

pub struct HttpCarrier {
    settings: HttpSettings,
    links: CarrierLinks,
    client: Arc<ProviderClient>,
    health: Arc<HttpHealth>,
    pace: Pace,
    /// If several messages go in one request.
    batches: Option<Batches>,
    ports: HttpPorts,
    is_stopped: AtomicBool,
    probing: AbortHandle,
    /// Asks for reports, if the carrier does.
    polling: OnceLock<AbortHandle>,
    is_poll_failing: AtomicBool,
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
        let carrier = Arc::new(Self {
            links: CarrierLinks::new(&settings.name, &settings.report_url, &settings.proof_keys),
            client,
            health,
            pace: Pace::new(settings.max_per_second),
            batches: settings
                .batch
                .as_ref()
                .map(|rules| Batches::new(rules.size, settings.window)),
            settings,
            ports,
            is_stopped: AtomicBool::new(false),
            probing: probing.abort_handle(),
            polling: OnceLock::new(),
            is_poll_failing: AtomicBool::new(false),
        });
        if let Some(rules) = carrier.settings.poll.clone() {
            let asking = Arc::downgrade(&carrier);
            let polling = supervise::spawn("http-carrier-poll", move || {
                poll::run(asking.clone(), rules.clone())
            });
            carrier.polling.get_or_init(|| polling.abort_handle());
        }
        carrier
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

    fn abort_tasks(&self) {
        self.probing.abort();
        if let Some(polling) = self.polling.get() {
            polling.abort();
        }
    }

    /// What the variables of a request stand for.
    fn values<'a>(
        &self,
        queued: &'a QueuedMessage,
        report_url: &'a str,
        items: &'a [Value],
    ) -> Values<'a> {
        let now = self.ports.clock.now();
        Values {
            subject: Subject::Message(MessageValues {
                queued,
                report_url,
                expires_in: queued.expires_at.duration_since(now).as_secs().max(1),
                items,
            }),
            at: now,
        }
    }

    /// Applies an answer to the provider's health.
    fn record(&self, verdict: &Verdict, answer: &Answer) {
        match verdict {
            Verdict::Taken(_) => self.health.record_success(),
            Verdict::Throttled => {
                self.health.record_answer();
                self.health
                    .slow_down(answer.retry_after.unwrap_or(DEFAULT_PAUSE));
            }
            Verdict::Failed(why) => {
                self.health.record_failure(why);
                if let Some(pause) = answer.retry_after {
                    self.health.slow_down(pause);
                }
            }
            Verdict::Denied(why) => self.health.set_down(why),
            Verdict::Refused { .. } => self.health.record_answer(),
        }
    }

    /// Applies an answer to the message.
    async fn conclude(
        &self,
        verdict: Verdict,
        answer: &Answer,
        queued: &QueuedMessage,
    ) -> CarrierAnswer {
        let carrier = &self.settings.name;
        match verdict {
            Verdict::Taken(theirs) => {
                let shown_id = theirs.as_deref().map(shown);
                tracing::debug!(carrier, message_id = %queued.id, provider_id = shown_id, "the provider took a message");
                if let Some(found) = self.looked_up(answer.fields.as_ref(), queued) {
                    return found;
                }
                self.await_report(queued, theirs.as_deref()).await;
                CarrierAnswer::Taken(vec![self.carrier_ref(queued.id).reference])
            }
            Verdict::Throttled => CarrierAnswer::NotNow(Code::THROTTLED),
            Verdict::Failed(_) | Verdict::Denied(_) => CarrierAnswer::NotNow(Code::LINK_DOWN),
            Verdict::Refused { code, theirs } => {
                let status = answer.status.as_u16();
                tracing::debug!(carrier, message_id = %queued.id, status, provider_code = theirs, %code, "the provider refused a message");
                if queued.unknown_tries == 0 {
                    return CarrierAnswer::Declined(code);
                }
                // That says nothing about the earlier requests.
                self.unknown(&"the provider refused a repetition", queued)
                    .await
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
    async fn unanswered(&self, why: &NoAnswer, queued: &QueuedMessage) -> CarrierAnswer {
        if !why.is_unknown() {
            return CarrierAnswer::NotNow(Code::LINK_DOWN);
        }
        self.unknown(why, queued).await
    }

    /// The provider may have the message.
    async fn unknown(&self, why: &(dyn Display + Sync), queued: &QueuedMessage) -> CarrierAnswer {
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
        self.await_report(queued, None).await;
        CarrierAnswer::Taken(vec![self.carrier_ref(queued.id).reference])
    }
}

/// Where the requests go; `None` if that is no URL, which a checked description rules out.
fn host(settings: &HttpSettings) -> Option<Uri> {
    settings.request.host()
}

impl Drop for HttpCarrier {
    fn drop(&mut self) {
        self.abort_tasks();
    }
}

#[async_trait]
impl Carrier for HttpCarrier {
    fn name(&self) -> &str {
        &self.settings.name
    }

    /// Without what is for questions about reports.
    fn window(&self) -> usize {
        let window = self.settings.window;
        match self.settings.poll {
            Some(_) => window.saturating_sub(poll::slots(window)).max(1),
            None => window,
        }
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
        if queued.expires_at <= self.ports.clock.now() {
            // It expired while it waited here, which its next attempt will find out.
            return CarrierAnswer::NotNow(Code::THROTTLED);
        }
        if let Some(batches) = &self.batches {
            return self.submit_together(batches, queued).await;
        }
        let report_url = self.links.report_url(queued.id);
        let values = self.values(queued, &report_url, &[]);
        let Ok(request) = self.settings.request.build(&values) else {
            return CarrierAnswer::Declined(Code::INTERNAL);
        };
        match self.client.send(request).await {
            Ok(answer) => {
                let verdict = self.settings.response.judge(&answer);
                self.record(&verdict, &answer);
                self.conclude(verdict, &answer, queued).await
            }
            Err(why) => {
                self.health.record_failure(&why.to_string());
                self.unanswered(&why, queued).await
            }
        }
    }

    async fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.abort_tasks();
    }
}
