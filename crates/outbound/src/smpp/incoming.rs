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
use super::receipt::{DeliveryFields, Parsed, parse};
use super::{IdForm, SmppSettings};

/// Handles deliveries on all links of a carrier.
pub(super) struct DeliveryHandler {
    carrier: String,
    ids: IdForm,
    match_recipient: bool,
    unmarked_receipts: bool,
    sink: Arc<dyn ReceiptSink>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    /// Receipts without an ID come in thousands or not at all, so only the first is logged; all are counted.
    warned_of_missing_id: AtomicBool,
}

impl DeliveryHandler {
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
            warned_of_missing_id: AtomicBool::new(false),
        }
    }

    /// The recipient of the message, which is the sender of the receipt.
    fn recipient(&self, from: &Address) -> Option<NumberTail> {
        let digits = str::from_utf8(&from.digits).ok()?;
        let tail = NumberTail::of_address(digits.trim());
        tail.filter(|_| self.match_recipient)
    }

    async fn take(&self, fields: DeliveryFields<'_>, from: &Address) -> Status {
        let fields = DeliveryFields {
            may_be_unmarked: self.unmarked_receipts,
            ..fields
        };
        let (kind, status) = match parse(&fields) {
            Parsed::Final { id, outcome } => self.store_receipt(&id, outcome, from).await,
            Parsed::Intermediate => (Received::Intermediate, Status::OK),
            Parsed::WithoutId => {
                if !self.warned_of_missing_id.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        carrier = self.carrier,
                        "the carrier sends receipts without a message ID; ask the carrier"
                    );
                }
                // A repeated delivery would still have no ID.
                (Received::WithoutId, Status::OK)
            }
            Parsed::Message => {
                tracing::debug!(
                    carrier = self.carrier,
                    "refused a message from a handset: this service only sends"
                );
                (Received::Handset, Status::ESME_RX_P_APPN)
            }
        };
        self.metrics.received(kind);
        status
    }

    async fn store_receipt(
        &self,
        id: &str,
        outcome: Outcome,
        from: &Address,
    ) -> (Received, Status) {
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
                tracing::debug!(carrier = self.carrier, %error, "a receipt could not be stored; the carrier will send it again");
                (Received::NotTaken, Status::ESME_RX_T_APPN)
            }
        }
    }
}

#[async_trait]
impl Incoming for DeliveryHandler {
    async fn deliver(&self, message: Box<ShortMessage>) -> Status {
        let id = message.tlvs.receipted_message_id();
        let fields = with_tlvs(&message.tlvs, id.as_deref());
        let fields = DeliveryFields {
            esm_class: message.esm_class,
            text: message.text(),
            ..fields
        };
        self.take(fields, &message.source).await
    }

    async fn data(&self, message: Box<DataMessage>) -> Status {
        let id = message.tlvs.receipted_message_id();
        let fields = with_tlvs(&message.tlvs, id.as_deref());
        let fields = DeliveryFields {
            esm_class: message.esm_class,
            text: message.tlvs.message_payload().map_or(&[], |text| text),
            ..fields
        };
        self.take(fields, &message.source).await
    }
}

fn with_tlvs<'o>(tlvs: &'o Tlvs, id: Option<&'o [u8]>) -> DeliveryFields<'o> {
    DeliveryFields {
        id,
        state: tlvs.message_state(),
        network_error: tlvs.get(tag::NETWORK_ERROR_CODE).map(|value| &value[..]),
        ..DeliveryFields::default()
    }
}
