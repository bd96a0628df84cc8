//! One connection to the SMSC.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use smpp::{
    BindKind, BindResp, Body, DEFAULT_MAX_PDU, Decoder, Frame, MessageResp, Pdu, ShortMessage,
    Status, command, encode,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::receipt_queue::{QueuedReceipt, ReceiptQueue};
use super::{Smsc, receipts};
use crate::simulator::SimulatedOutcome;

/// How many receipts may be unanswered.
const MAX_UNANSWERED: usize = 500;
/// Above this size of the write buffer, nothing is read.
const MAX_OUTPUT: usize = 1 << 20;
/// The size of one read.
const READ_AT_ONCE: usize = 64 << 10;
/// The system ID in bind responses.
const SYSTEM_ID: &[u8] = b"switchboard";
const LAST_SEQUENCE: u32 = 0x7FFF_FFFF;

/// Serves a connection until it ends, and returns why it ended.
pub(super) async fn serve(smsc: Arc<Smsc>, stream: TcpStream) -> &'static str {
    if stream.set_nodelay(true).is_err() {
        return "the connection was lost";
    }
    let mut connection = Connection {
        smsc,
        bound: None,
        output: BytesMut::new(),
        unanswered: HashMap::new(),
        sequence: 0,
        batch: Vec::new(),
        is_ending: false,
    };
    let why = connection.run(stream).await;
    if let Some((_, queue)) = connection.bound {
        queue.put_back(connection.unanswered.into_values());
    }
    why
}

struct Connection {
    smsc: Arc<Smsc>,
    bound: Option<(BindKind, Arc<ReceiptQueue>)>,
    output: BytesMut,
    /// Unanswered receipts by sequence number.
    unanswered: HashMap<u32, QueuedReceipt>,
    sequence: u32,
    /// Receipts for the messages that were read last, queued together.
    batch: Vec<QueuedReceipt>,
    is_ending: bool,
}

impl Connection {
    async fn run(&mut self, stream: TcpStream) -> &'static str {
        let (mut reading, mut writing) = stream.into_split();
        let mut decoder = Decoder::new(DEFAULT_MAX_PDU);
        let mut input = BytesMut::new();
        loop {
            if self.is_ending && self.output.is_empty() {
                return "unbound";
            }
            let queue = self
                .receives()
                .filter(|_| self.unanswered.len() < MAX_UNANSWERED);
            input.reserve(READ_AT_ONCE);
            tokio::select! {
                read = reading.read_buf(&mut input), if self.output.len() < MAX_OUTPUT => match read {
                    Ok(0) => return "closed by the other side",
                    Err(_) => return "the connection was lost",
                    Ok(_) => loop {
                        match decoder.next(&mut input) {
                            Ok(Some(frame)) => self.take(frame),
                            Ok(None) => break self.queue_receipts(),
                            Err(_) => return "a PDU of an absurd length",
                        }
                    },
                },
                written = writing.write_buf(&mut self.output), if !self.output.is_empty() => {
                    if !matches!(written, Ok(1..)) {
                        return "the connection was lost";
                    }
                }
                () = due(queue.as_deref()), if queue.is_some() => self.write_receipts(),
            }
        }
    }

    /// The receipt queue, if this connection may receive.
    fn receives(&self) -> Option<Arc<ReceiptQueue>> {
        match &self.bound {
            Some((BindKind::Receiver | BindKind::Transceiver, queue)) if !self.is_ending => {
                Some(queue.clone())
            }
            _ => None,
        }
    }

    fn take(&mut self, frame: Frame) {
        let pdu = match frame {
            Frame::Ok(pdu) => pdu,
            Frame::Bad { sequence, why, .. } => {
                return self.answer(why.status(), sequence, Body::GenericNack);
            }
        };
        let sequence = pdu.sequence;
        match pdu.body {
            Body::Bind(kind, bind) => {
                let (status, bound) = match (&self.bound, self.smsc.admit(&bind)) {
                    (Some(_), _) => (Status::ESME_RALYBND, None),
                    (None, Ok(queue)) => (Status::OK, Some((kind, queue))),
                    (None, Err(status)) => (status, None),
                };
                self.is_ending |= self.bound.is_none() && bound.is_none();
                self.bound = self.bound.take().or(bound);
                let resp = BindResp {
                    system_id: Bytes::from_static(SYSTEM_ID),
                    ..BindResp::default()
                };
                self.answer(status, sequence, Body::BindResp(kind, resp));
            }
            Body::SubmitSm(message) => {
                let (status, id) = self.submit(&message);
                self.answer(status, sequence, Body::SubmitSmResp(MessageResp::new(id)));
            }
            Body::DeliverSmResp(_) => self.settle(sequence, pdu.status),
            Body::GenericNack => self.settle(sequence, Status::ESME_RSYSERR),
            Body::EnquireLink => self.answer(Status::OK, sequence, Body::EnquireLinkResp),
            Body::Unbind => {
                self.answer(Status::OK, sequence, Body::UnbindResp);
                self.is_ending = true;
            }
            body if body.command() & command::RESPONSE == 0 => {
                self.answer(Status::ESME_RINVCMDID, sequence, Body::GenericNack);
            }
            _ => {}
        }
    }

    /// The status and ID to answer a message with.
    fn submit(&mut self, message: &ShortMessage) -> (Status, String) {
        let refused = |status| (status, String::new());
        if !matches!(
            self.bound,
            Some((BindKind::Transmitter | BindKind::Transceiver, _))
        ) {
            return refused(Status::ESME_RINVBNDSTS);
        }
        if !self.smsc.accepts_part() {
            return refused(Status::ESME_RTHROTTLED);
        }
        let outcome = receipts::outcome_for(message);
        if let SimulatedOutcome::Refused(code) = outcome {
            return refused(receipts::status_for(code));
        }
        if let Some(observer) = &self.smsc.observer {
            observer(receipts::arrived(message));
        }
        let id = self.smsc.next_id();
        if message.registered_delivery & 1 != 0 && outcome != SimulatedOutcome::Silent {
            // Copied, because the octets are a slice of the read buffer.
            let address = |address: &smpp::Address| {
                let digits = Bytes::copy_from_slice(&address.digits);
                (address.ton, address.npi, digits)
            };
            self.batch.push(QueuedReceipt {
                due: Instant::now() + self.smsc.settings.delay,
                id,
                from: address(&message.source),
                to: address(&message.destination),
                outcome,
                accepted_at: self.smsc.clock.now(),
            });
        }
        (Status::OK, receipts::answer_id(self.smsc.settings.ids, id))
    }

    /// Queues the receipts for the messages that were read.
    fn queue_receipts(&mut self) {
        if let Some((_, queue)) = &self.bound
            && !self.batch.is_empty()
        {
            queue.add(self.batch.drain(..));
        }
    }

    /// Writes receipts that are due.
    fn write_receipts(&mut self) {
        let Some(queue) = self.receives() else {
            return;
        };
        let now = self.smsc.clock.now();
        for queued in queue.take(MAX_UNANSWERED - self.unanswered.len()) {
            self.sequence = self.sequence % LAST_SEQUENCE + 1;
            let receipt = receipts::receipt(&queued, self.smsc.settings.ids, now);
            let body = Body::DeliverSm(Box::new(receipt));
            self.answer(Status::OK, self.sequence, body);
            self.unanswered.insert(self.sequence, queued);
        }
    }

    /// Handles the answer to a receipt. A refused one is sent again later.
    fn settle(&mut self, sequence: u32, status: Status) {
        let Some(mut receipt) = self.unanswered.remove(&sequence) else {
            return;
        };
        if let Some((_, queue)) = &self.bound
            && !status.is_ok()
        {
            receipt.due = Instant::now() + self.smsc.settings.delay.max(RETRY_AFTER);
            queue.add([receipt]);
        }
    }

    fn answer(&mut self, status: Status, sequence: u32, body: Body) {
        let pdu = Pdu::with_status(status, sequence, body);
        if let Err(error) = encode(&pdu, &mut self.output) {
            tracing::error!(%error, "a PDU of this SMSC cannot be encoded");
        }
    }
}

/// The shortest pause before a refused receipt is sent again.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_millis(200);

async fn due(queue: Option<&ReceiptQueue>) {
    match queue {
        Some(queue) => queue.due().await,
        None => std::future::pending().await,
    }
}
