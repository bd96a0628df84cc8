//! Handles what the provider sends: reports, and texts from handsets.

use std::sync::atomic::Ordering;

use domain::delivery::{CarrierRef, Receipt};
use domain::ports::{CarrierPost, ReceiptError, ReportResult};
use domain::{MessageId, Network, Outcome};

use super::fields::Fields;
use super::report::ReportContent;
use super::response::shown;
use super::{HttpCarrier, reference};

impl HttpCarrier {
    /// Handles a report about a message, if the URL proves that it may come.
    pub(super) async fn take_report(
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
        match self.apply_report(message, &fields).await {
            Some(stored) => self.result(stored.map(drop)),
            None => not_a_report("The body has no state where this carrier has one."),
        }
    }

    /// Stores what a report says, and returns whether the message has ended. `None` if it has no state where this
    /// carrier has one.
    pub(super) async fn apply_report(
        &self,
        message: MessageId,
        fields: &Fields,
    ) -> Option<Result<bool, ReceiptError>> {
        let settings = &self.settings;
        if let Some(rules) = &settings.report
            && let Some(content) = rules.read(fields)
        {
            let theirs = rules.id.as_ref().and_then(|id| fields.text(id));
            let theirs = theirs.as_deref().map(shown);
            tracing::debug!(carrier = settings.name, message_id = %message, provider_id = theirs, "the provider reported");
            let network = rules.network.read(fields);
            let has_ended = content != ReportContent::InTransit;
            let stored = self.pass_on(message, content, network).await;
            return Some(stored.map(|()| has_ended));
        }
        let found = settings.lookup.as_ref()?.read(fields)?;
        let subscriber = found.subscriber(None, &*self.ports.numbers);
        let report = subscriber.payload(message);
        let (outcome, network) = (subscriber.outcome(), subscriber.network);
        let stored = self.receive(message, outcome, Some(report), network).await;
        Some(stored.map(|()| true))
    }

    async fn pass_on(
        &self,
        message: MessageId,
        content: ReportContent,
        network: Option<Network>,
    ) -> Result<(), ReceiptError> {
        match content {
            ReportContent::InTransit => Ok(()),
            ReportContent::Ended(outcome) => self.receive(message, outcome, None, network).await,
            // A message that was seen is also delivered, and that report may never come.
            ReportContent::Seen => {
                let delivered = Outcome::Delivered;
                self.receive(message, delivered, None, network).await?;
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
        network: Option<Network>,
    ) -> Result<(), ReceiptError> {
        let receipt = Receipt {
            of: self.carrier_ref(message),
            to: None,
            outcome,
            report,
            network,
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
    pub(super) async fn take_text(&self, proof: &str, post: CarrierPost<'_>) -> ReportResult {
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
            let rules = self.settings.report.as_ref();
            let network = rules.and_then(|it| it.network.read(&fields));
            return self.result(self.pass_on(message, content, network).await);
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
