//! Handles what the provider sends: reports, and texts from handsets.

use std::sync::atomic::Ordering;

use domain::delivery::{CarrierRef, Receipt};
use domain::ports::{CarrierPost, ReceiptError, ReportResult};
use domain::{MessageId, Network, Outcome};

use super::HttpCarrier;
use super::fields::Fields;
use super::report::ReportContent;
use super::response::shown;

impl HttpCarrier {
    /// Handles a report about a message, if the URL proves that it may come.
    pub(super) async fn take_report(
        &self,
        message: MessageId,
        proof: &str,
        post: CarrierPost<'_>,
    ) -> ReportResult {
        let is_proven = self.links.admits_report(message, proof)
            && self.is_signed(|| self.links.report_url_with(message, proof), post);
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

    /// Stores what a report says, or each of a list of them, and returns whether the message has ended. `None` if it
    /// has no state where this carrier has one.
    pub(super) async fn apply_report(
        &self,
        message: MessageId,
        fields: &Fields,
    ) -> Option<Result<bool, ReceiptError>> {
        let rules = self.settings.report.as_ref();
        let list = rules.and_then(|rules| rules.list.as_ref());
        let Some(items) = list.and_then(|list| fields.items(list)) else {
            return self.apply_one(message, fields).await;
        };
        let mut has_ended = false;
        for item in items {
            match self.apply_one(message, &item).await? {
                Ok(ended) => has_ended |= ended,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(has_ended))
    }

    async fn apply_one(
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

    pub(super) fn carrier_ref(&self, message: MessageId) -> CarrierRef {
        CarrierRef::by_message(&self.settings.name, message)
    }

    /// Handles a text from a handset, if the URL proves that it may come.
    pub(super) async fn take_text(&self, proof: &str, post: CarrierPost<'_>) -> ReportResult {
        let is_proven = self.links.admits_inbound(proof)
            && self.is_signed(|| self.links.inbound_url_with(proof), post);
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
        let texts = match rules.read_all(&self.settings.name, &fields) {
            Ok(texts) => texts,
            // About a message that is still on its way.
            Err(_) if shared.is_some() => return ReportResult::Yes,
            Err(error) => return not_a_report(&error.to_string()),
        };
        for (source, text) in texts {
            let stored = self.ports.handsets.receive_once(source, text).await;
            if stored.is_err() {
                return self.result(stored);
            }
        }
        ReportResult::TextStored
    }

    /// What the provider reports about a message by the URL for inbound messages, if this carrier's does.
    fn shared_report(&self, fields: &Fields) -> Option<(MessageId, ReportContent)> {
        let rules = self.settings.report.as_ref().filter(|it| it.is_shared)?;
        let message = fields.text(rules.id.as_ref()?)?.parse().ok()?;
        Some((message, rules.read(fields)?))
    }

    fn is_signed(&self, url: impl FnOnce() -> String, post: CarrierPost<'_>) -> bool {
        let rules = self.settings.signature.as_ref();
        let now = self.ports.clock.now();
        rules.is_none_or(|rules| rules.verifies(&url(), post, now))
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
