//! Handles what a carrier delivers: receipts go to the sink, and the carrier is answered once they are stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::smpp::{Address, DataMessage, Incoming, ShortMessage, Status, Tlvs, tag};
use async_trait::async_trait;
use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{CarrierRef, Receipt};
use domain::kill_point::{KillPoint, pass};
use domain::ports::ReceiptSink;
use domain::{Clock, Outcome};

use super::metrics::{Metrics, Received};
use super::receipt::{Reading, Report, read};
use super::{IdForm, SmppSettings};

/// Handles deliveries on all links of a carrier.
pub(super) struct Inbox {
    carrier: String,
    ids: IdForm,
    match_recipient: bool,
    unmarked_receipts: bool,
    sink: Arc<dyn ReceiptSink>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    /// Receipts without an ID come in thousands or not at all, so only the first is logged; all are counted.
    told_of_nameless: AtomicBool,
}

impl Inbox {
    pub(super) fn new(
        settings: &SmppSettings,
        sink: Arc<dyn ReceiptSink>,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            carrier: settings.name.clone(),
            ids: settings.receipt_ids,
            match_recipient: settings.match_recipient,
            unmarked_receipts: settings.unmarked_receipts,
            sink,
            clock,
            metrics,
            told_of_nameless: AtomicBool::new(false),
        }
    }

    /// The recipient of the message, which is the sender of the receipt.
    fn recipient(&self, from: &Address) -> Option<NumberTail> {
        let digits = str::from_utf8(&from.digits).ok()?;
        let tail = NumberTail::of_address(digits.trim());
        tail.filter(|_| self.match_recipient)
    }

    async fn take(&self, report: Report<'_>, from: &Address) -> Status {
        let report = Report {
            may_be_unmarked: self.unmarked_receipts,
            ..report
        };
        let (kind, status) = match read(&report) {
            Reading::Final { id, outcome } => self.hand_in(&id, outcome, from).await,
            Reading::Passing => (Received::Passing, Status::OK),
            Reading::Nameless => {
                if !self.told_of_nameless.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        carrier = self.carrier,
                        "receipts come that do not say for which message; ask the carrier"
                    );
                }
                // A repeated delivery would still have no ID.
                (Received::Nameless, Status::OK)
            }
            Reading::Message => {
                tracing::debug!(
                    carrier = self.carrier,
                    "a message from a handset is not taken: this service only sends"
                );
                (Received::Handset, Status::ESME_RX_P_APPN)
            }
        };
        self.metrics.received(kind);
        status
    }

    async fn hand_in(&self, id: &str, outcome: Outcome, from: &Address) -> (Received, Status) {
        let receipt = Receipt {
            of: CarrierRef {
                carrier: self.carrier.clone(),
                reference: self.ids.canonical(id),
            },
            to: self.recipient(from),
            outcome,
            report: None,
            at: self.clock.now(),
        };
        pass(KillPoint::ReceiptCame);
        match self.sink.receive(receipt).await {
            Ok(true) => {
                pass(KillPoint::ReceiptStored);
                (Received::Final, Status::OK)
            }
            Ok(false) => (Received::Unmatched, Status::OK),
            Err(error) => {
                tracing::debug!(carrier = self.carrier, %error, "a receipt stays with the carrier");
                (Received::NotTaken, Status::ESME_RX_T_APPN)
            }
        }
    }
}

#[async_trait]
impl Incoming for Inbox {
    async fn deliver(&self, message: Box<ShortMessage>) -> Status {
        let id = message.tlvs.receipted_message_id();
        let report = with_tlvs(&message.tlvs, id.as_deref());
        let report = Report {
            esm_class: message.esm_class,
            text: message.text(),
            ..report
        };
        self.take(report, &message.source).await
    }

    async fn data(&self, message: Box<DataMessage>) -> Status {
        let id = message.tlvs.receipted_message_id();
        let report = with_tlvs(&message.tlvs, id.as_deref());
        let report = Report {
            esm_class: message.esm_class,
            text: message.tlvs.message_payload().map_or(&[], |text| text),
            ..report
        };
        self.take(report, &message.source).await
    }
}

fn with_tlvs<'o>(tlvs: &'o Tlvs, id: Option<&'o [u8]>) -> Report<'o> {
    Report {
        id,
        state: tlvs.message_state(),
        network_error: tlvs.get(tag::NETWORK_ERROR_CODE).map(|value| &value[..]),
        ..Report::default()
    }
}
