//! Handles what a carrier delivers, receipts and texts from handsets: the carrier is answered once they are stored.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::smpp::{Address, DataMessage, Incoming, ShortMessage, Status, Tlvs, tag};
use async_trait::async_trait;
use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{CarrierRef, Receipt};
use domain::kill_point::{KillPoint, pass};
use domain::ports::{DeliveredCopy, HandsetSink, ReceiptSink};
use domain::{Clock, Outcome};
use tokio::time::Instant;

use super::handset::HandsetFields;
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
    handsets: Arc<dyn HandsetSink>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    /// Receipts without an ID come in thousands or not at all, so only the first is logged; all are counted.
    warned_of_missing_id: AtomicBool,
}

impl DeliveryHandler {
    pub(super) fn new(
        settings: &SmppSettings,
        sink: Arc<dyn ReceiptSink>,
        handsets: Arc<dyn HandsetSink>,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            carrier: settings.name.clone(),
            ids: settings.receipt_ids,
            match_recipient: settings.match_recipient,
            unmarked_receipts: settings.unmarked_receipts,
            sink,
            handsets,
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

    /// Handles a receipt; `None` if it is a text from a handset.
    async fn take_receipt(&self, fields: DeliveryFields<'_>, from: &Address) -> Option<Status> {
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
            Parsed::Message => return None,
        };
        self.metrics.received(kind);
        Some(status)
    }

    async fn take_text(&self, fields: HandsetFields<'_>, copy: (i64, i64)) -> Status {
        let Some(text) = fields.read(&self.carrier) else {
            tracing::debug!(
                carrier = self.carrier,
                "refused a text from a handset: it was sent to no number"
            );
            self.metrics.received(Received::Unreadable);
            return Status::ESME_RX_P_APPN;
        };
        let copy = DeliveredCopy {
            session: copy.0,
            number: copy.1,
            hash: fields.hash(&self.carrier),
        };
        pass(KillPoint::TextCame);
        let (kind, status) = match self.handsets.receive(copy, text).await {
            Ok(()) => {
                pass(KillPoint::TextStored);
                (Received::Handset, Status::OK)
            }
            Err(error) => {
                tracing::debug!(carrier = self.carrier, %error, "a text from a handset could not be stored; the carrier will send it again");
                (Received::NotTaken, Status::ESME_RX_T_APPN)
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

/// An answer counts as received if something comes from the carrier this long after it.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Handles what one session delivers, and knows which answers the carrier has got: a text whose answer may be lost can
/// come again on another session.
pub(super) struct SessionDeliveries {
    handler: Arc<DeliveryHandler>,
    session: i64,
    /// How many texts it has delivered.
    count: AtomicI64,
    /// Texts that were answered, with the time.
    answered: Mutex<VecDeque<(Instant, i64)>>,
    has_ended: AtomicBool,
}

impl SessionDeliveries {
    pub(super) fn new(handler: Arc<DeliveryHandler>) -> Arc<Self> {
        let mut session = [0; 8];
        getrandom::fill(&mut session).expect("the operating system gives random bytes");
        Arc::new(Self {
            handler,
            session: i64::from_ne_bytes(session),
            count: AtomicI64::new(0),
            answered: Mutex::default(),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Call this when the session has ended.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) > 0 {
            self.handler.handsets.end_session(self.session);
        }
    }

    async fn take_text(&self, fields: HandsetFields<'_>) -> Status {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let status = self.handler.take_text(fields, (self.session, number)).await;
        let mut answered = self.answered.lock().expect("no holder panics");
        answered.push_back((Instant::now(), number));
        drop(answered);
        // It was stored after the end of its session was.
        if self.has_ended.load(Ordering::SeqCst) {
            self.handler.handsets.end_session(self.session);
        }
        status
    }
}

#[async_trait]
impl Incoming for SessionDeliveries {
    fn heard(&self) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let now = Instant::now();
        let mut confirmed = Vec::new();
        let mut answered = self.answered.lock().expect("no holder panics");
        while let Some((at, number)) = answered.front()
            && now.duration_since(*at) >= ANSWER_TIME
        {
            confirmed.push((self.session, *number));
            answered.pop_front();
        }
        drop(answered);
        if !confirmed.is_empty() {
            self.handler.handsets.confirm(&confirmed);
        }
    }

    async fn deliver(&self, message: Box<ShortMessage>) -> Status {
        let id = message.tlvs.receipted_message_id();
        let fields = with_tlvs(&message.tlvs, id.as_deref());
        let fields = DeliveryFields {
            esm_class: message.esm_class,
            text: message.text(),
            ..fields
        };
        match self.handler.take_receipt(fields, &message.source).await {
            Some(status) => status,
            None => self.take_text(HandsetFields::from_deliver(&message)).await,
        }
    }

    async fn data(&self, message: Box<DataMessage>) -> Status {
        let id = message.tlvs.receipted_message_id();
        let fields = with_tlvs(&message.tlvs, id.as_deref());
        let fields = DeliveryFields {
            esm_class: message.esm_class,
            text: message.tlvs.message_payload().map_or(&[], |text| text),
            ..fields
        };
        match self.handler.take_receipt(fields, &message.source).await {
            Some(status) => status,
            None => self.take_text(HandsetFields::from_data(&message)).await,
        }
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
