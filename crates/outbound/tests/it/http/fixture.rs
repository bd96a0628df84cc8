//! A scripted provider, a carrier that is connected to it, and sinks that record what it sends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::message::lookup::HomeOperator;
use domain::ports::{
    AwaitedReport, Carrier as _, CarrierPost, CarrierReports as _, DeliveredCopy, DuePoll,
    ForwardedText, HandsetSink, HandsetText, HomeNetwork, NumberLocator, ReceiptError, ReportPolls,
    ReportResult, StoreError,
};
use domain::{Channel, Country, MessageId, Msisdn, Network};
use outbound::dial::public_roots;
use outbound::http::{
    CodeTable, HttpPorts, InboundRecipient, InboundRules, LookupRules, NetworkRules, Pointer,
    ReportRules, RequestDescription, RequestRules, ResponseRules, Secrets, Statuses,
};
use outbound::{HttpCarrier, HttpReports, HttpSettings, UpstreamReports};
use serde_json::json;
use testkit::receiver::{ReceivedRequest, Receiver, Reply, Request};

use crate::upstream::fixture::{FixedClock, RecordingSink, id};

pub(super) const SECRET: &str = "hunter2";

/// Records texts; `error` is the answer to every text if set.
#[derive(Default)]
pub(super) struct RecordingHandsets {
    pub(super) texts: Mutex<Vec<([u8; 16], ForwardedText)>>,
    pub(super) error: Mutex<Option<ReceiptError>>,
}

#[async_trait]
impl HandsetSink for RecordingHandsets {
    async fn receive_once(
        &self,
        source: [u8; 16],
        text: ForwardedText,
    ) -> Result<(), ReceiptError> {
        if let Some(error) = *self.error.lock().expect("not poisoned") {
            return Err(error);
        }
        let mut texts = self.texts.lock().expect("not poisoned");
        texts.push((source, text));
        Ok(())
    }

    async fn receive(&self, _: DeliveredCopy, _: HandsetText) -> Result<(), ReceiptError> {
        unreachable!("a provider sends whole texts")
    }

    fn confirm(&self, _: &[(i64, i64)]) {}

    fn end_session(&self, _: i64) {}
}

/// The messages to ask about. Each is due at once, again and again.
#[derive(Default)]
pub(super) struct WaitingPolls {
    pub(super) waiting: Mutex<Vec<AwaitedReport>>,
    /// The answer to the next message that is added.
    pub(super) error: Mutex<Option<ReceiptError>>,
}

#[async_trait]
impl ReportPolls for WaitingPolls {
    async fn add(&self, awaited: AwaitedReport) -> Result<(), ReceiptError> {
        if let Some(error) = self.error.lock().expect("not poisoned").take() {
            return Err(error);
        }
        self.waiting.lock().expect("not poisoned").push(awaited);
        Ok(())
    }

    async fn claim(&self, _: &str, _: Duration, limit: u32) -> Result<Vec<DuePoll>, StoreError> {
        let waiting = self.waiting.lock().expect("not poisoned");
        let due = waiting.iter().map(|awaited| DuePoll {
            id: awaited.id,
            provider_id: awaited.provider_id.clone(),
        });
        Ok(due.take(limit as usize).collect())
    }

    async fn remove(&self, _: &str, ids: &[MessageId]) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock().expect("not poisoned");
        waiting.retain(|awaited| !ids.contains(&awaited.id));
        Ok(())
    }
}

/// Knows the networks 247-01 and 247-02.
struct Numbers;

impl NumberLocator for Numbers {
    fn locate(&self, _: &Msisdn) -> HomeNetwork {
        operator(1)
    }

    fn operator_of(&self, network: Network) -> Option<HomeNetwork> {
        Some(operator(network.mnc().parse().expect("a number")))
    }

    fn other_operator(&self, _: &HomeNetwork) -> Option<HomeNetwork> {
        None
    }
}

fn operator(id: u32) -> HomeNetwork {
    let country = Country::parse("LV").ok();
    HomeNetwork {
        country,
        operator: Some(HomeOperator {
            id,
            name: format!("Operator {id}"),
            country,
        }),
        network: None,
    }
}

/// Everything that a test needs.
pub(super) struct Fixture {
    pub(super) server: Receiver,
    pub(super) carrier: Arc<HttpCarrier>,
    pub(super) sink: Arc<RecordingSink>,
    pub(super) handsets: Arc<RecordingHandsets>,
    pub(super) polls: Arc<WaitingPolls>,
    reports: Arc<HttpReports>,
}

impl Fixture {
    pub(super) fn answering(reply: Reply) -> Self {
        Self::start(move |_| reply.clone())
    }

    pub(super) fn start(script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(script, |_| {})
    }

    /// A carrier with its own settings.
    pub(super) fn with(
        script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
        change: impl FnOnce(&mut HttpSettings),
    ) -> Self {
        Self::at(script, |settings, _| change(settings))
    }

    /// A carrier with its own settings, which may depend on the URL of the provider.
    pub(super) fn at(
        script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
        change: impl FnOnce(&mut HttpSettings, &Receiver),
    ) -> Self {
        let server = Receiver::builder().script(script).start();
        let mut settings = settings(&server.url("/send"));
        change(&mut settings, &server);
        let (sink, handsets) = (
            Arc::<RecordingSink>::default(),
            Arc::<RecordingHandsets>::default(),
        );
        let polls = Arc::<WaitingPolls>::default();
        let ports = HttpPorts {
            receipts: sink.clone(),
            handsets: handsets.clone(),
            numbers: Arc::new(Numbers),
            polls: polls.clone(),
            clock: Arc::new(FixedClock),
        };
        let carrier = HttpCarrier::start(settings, ports);
        let reports = HttpReports::new(UpstreamReports::new());
        reports.set([carrier.clone()]);
        Self {
            server,
            carrier,
            sink,
            handsets,
            polls,
            reports,
        }
    }

    pub(super) async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer {
        self.carrier.submit(queued).await
    }

    pub(super) fn note(&self) -> Option<String> {
        self.carrier.state().note
    }

    /// The requests that the provider got.
    pub(super) fn posted(&self) -> Vec<ReceivedRequest> {
        self.server.received()
    }

    /// The end of the URL for reports about message 7, as the provider got it.
    pub(super) fn proof(&self) -> String {
        let url = self.posted().pop().expect("a request").json()["callback"].clone();
        let url = url.as_str().expect("a URL");
        let start = "https://sms.example/carriers/beta/reports/7/";
        url.strip_prefix(start).expect(url).to_owned()
    }

    /// Sends a report about message 7.
    pub(super) async fn report(&self, proof: &str, body: &str) -> ReportResult {
        self.report_with(
            "beta",
            7,
            proof,
            CarrierPost {
                headers: &[],
                body: body.as_bytes(),
            },
        )
        .await
    }

    pub(super) async fn report_with(
        &self,
        carrier: &str,
        message: u64,
        proof: &str,
        post: CarrierPost<'_>,
    ) -> ReportResult {
        self.reports.take(carrier, id(message), proof, post).await
    }

    pub(super) async fn text(&self, proof: &str, post: CarrierPost<'_>) -> ReportResult {
        self.reports.take_text("beta", proof, post).await
    }
}

pub(super) fn pointer(text: &str) -> Pointer {
    Pointer::parse("pointer", text).expect(text)
}

fn statuses(texts: &[&str]) -> Statuses {
    let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
    Statuses::parse("statuses", &texts).expect("statuses")
}

fn codes(table: &[(&str, u16)]) -> CodeTable {
    let table: BTreeMap<_, _> = table
        .iter()
        .map(|(name, code)| (name.to_string(), *code))
        .collect();
    CodeTable::parse("errors", &table).expect("codes")
}

pub(super) fn request(url: &str) -> RequestRules {
    let description = RequestDescription {
        method: "POST".to_owned(),
        url: url.to_owned(),
        headers: vec![(
            "Authorization".to_owned(),
            "Bearer {{ secret.key }}".to_owned(),
        )],
        json: Some(json!({
            "to": "{{ to }}", "from": "{{ from }}", "text": "{{ text }}", "callback": "{{ report_url }}",
            "ref": "{{ id }}", "ttl": "{{ expires_in }}",
        })),
        ..RequestDescription::default()
    };
    let secrets = Secrets::from([("key".to_owned(), SECRET.to_owned())]);
    RequestRules::parse(&description, None, &secrets).expect("a request")
}

pub(super) fn settings(url: &str) -> HttpSettings {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    HttpSettings {
        name: "beta".to_owned(),
        channels: Channel::ALL.to_vec(),
        request: request(url),
        response: ResponseRules {
            taken: statuses(&["2xx"]),
            later: statuses(&["429", "5xx"]),
            id: Some(pointer("/id")),
            id_after: None,
            state: None,
            refused: Vec::new(),
            refused_text: Vec::new(),
            error: Some(pointer("/code")),
            error_after: None,
            errors: codes(&[("17", 53)]),
        },
        report: Some(ReportRules {
            id: Some(pointer("/id")),
            state: pointer("/status"),
            delivered: words(&["delivered"]),
            failed: words(&["failed"]),
            expired: words(&["expired"]),
            seen: words(&["read"]),
            error: Some(pointer("/error")),
            errors: codes(&[("27", 43)]),
            network: NetworkRules::Whole(pointer("/mccmnc")),
            is_shared: false,
            list: None,
        }),
        inbound: Some(InboundRules {
            list: None,
            from: pointer("/from"),
            to: InboundRecipient::parse("inbound.to", "/to").expect("a pointer"),
            text: pointer("/text"),
            id: Some(pointer("/id")),
        }),
        lookup: Some(LookupRules {
            present: pointer("/reachable"),
            present_values: Vec::new(),
            ported: Some(pointer("/ported")),
            network: NetworkRules::Whole(pointer("/network")),
            original_network: Some(pointer("/original")),
            error: None,
            errors: codes(&[]),
            other_error: None,
        }),
        poll: None,
        batch: None,
        signature: None,
        report_url: "https://sms.example".parse().expect("a URL"),
        proof_keys: vec![[7; 32]],
        window: 8,
        max_per_second: None,
        timeout: Duration::from_secs(10),
        unknown_tries: 2,
        tls: public_roots(),
        proxy: None,
        source: None,
    }
}
