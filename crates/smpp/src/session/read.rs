//! Reads PDUs and handles them.

use std::sync::Arc;
use std::task::Waker;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::clock::add_saturating;
use super::delivery::Delivery;
use super::link::{Phase, Shared};
use super::{EndReason, Incoming, SubmitAnswer};
use crate::decode::{Header, message_resp_in_place};
use crate::{Body, Decoder, FatalLength, Frame, MessageResp, Pdu, Status, Tlvs, command};

/// The size of one read.
const READ_AT_ONCE: usize = 64 << 10;

pub(super) struct PduReader {
    shared: Arc<Shared>,
    incoming: Arc<dyn Incoming>,
    permits: Arc<Semaphore>,
    decoder: Decoder,
    /// Answers that were read together, handed over together.
    answers: Vec<(u32, SubmitAnswer)>,
    wakers: Vec<Waker>,
}

impl PduReader {
    pub(super) fn new(shared: Arc<Shared>, incoming: Arc<dyn Incoming>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(shared.limits.incoming)),
            decoder: Decoder::new(shared.limits.max_pdu),
            answers: Vec::new(),
            wakers: Vec::new(),
            shared,
            incoming,
        }
    }

    /// Runs until the connection ends, starting with octets that are already read.
    pub(super) async fn run<R: AsyncRead + Unpin>(
        mut self,
        mut reader: R,
        mut buffer: BytesMut,
    ) -> EndReason {
        loop {
            if let Err(fatal) = self.take(&mut buffer).await {
                return fatal.into();
            }
            buffer.reserve(READ_AT_ONCE);
            match reader.read_buf(&mut buffer).await {
                Ok(0) => return EndReason::ClosedByPeer,
                Ok(_) => {
                    self.shared.lock().last_received = Instant::now();
                    self.incoming.heard();
                }
                Err(error) => return EndReason::Io(error.to_string()),
            }
        }
    }

    /// Handles all complete PDUs in the buffer.
    async fn take(&mut self, buffer: &mut BytesMut) -> Result<(), FatalLength> {
        loop {
            let read = self.take_answers(buffer);
            // Must come before anything that waits or returns.
            self.shared.answer(&mut self.answers, &mut self.wakers);
            read?;
            match self.decoder.next(buffer)? {
                Some(Frame::Ok(pdu)) => self.handle(pdu).await,
                Some(Frame::Bad {
                    command,
                    sequence,
                    why,
                }) => {
                    warn!(command, sequence, %why, "refused a PDU");
                    self.refuse(command, sequence, why.status()).await;
                }
                None => return Ok(()),
            }
        }
    }

    /// Takes plain `submit_sm_resp` PDUs from the start of the buffer. They are most of the traffic, so they have a
    /// fast path.
    fn take_answers(&mut self, buffer: &mut BytesMut) -> Result<(), FatalLength> {
        let mut taken = 0;
        let read = loop {
            let left = &buffer[taken..];
            let length = match self.decoder.frame_length(left) {
                Ok(Some(length)) => length,
                Ok(None) => break Ok(()),
                Err(fatal) => break Err(fatal),
            };
            let frame = &left[..length];
            let header = Header::parse(frame);
            if header.command != command::SUBMIT_SM_RESP {
                break Ok(());
            }
            let Some(MessageResp { message_id, tlvs }) = message_resp_in_place(frame) else {
                break Ok(());
            };
            let status = header.status;
            self.answers.push((
                header.sequence,
                SubmitAnswer {
                    status,
                    message_id,
                    tlvs,
                },
            ));
            taken += length;
        };
        buffer.advance(taken);
        read
    }

    async fn handle(&mut self, pdu: Pdu) {
        let Pdu {
            status,
            sequence,
            body,
        } = pdu;
        match body {
            Body::SubmitSmResp(resp) => self.answers.push((sequence, copy_answer(status, &resp))),
            Body::GenericNack => self.nack(status, sequence),
            Body::EnquireLink => {
                self.reply(Pdu::new(sequence, Body::EnquireLinkResp)).await;
            }
            Body::EnquireLinkResp | Body::UnbindResp => {
                if self.shared.lock().answered(sequence) {
                    self.shared.changed.notify_one();
                }
            }
            Body::Unbind => self.unbind(sequence),
            Body::DeliverSm(message) => {
                let delivery = self.start_delivery(sequence, false).await;
                let incoming = Arc::clone(&self.incoming);
                tokio::spawn(async move { delivery.answer(incoming.deliver(message).await) });
            }
            Body::DataSm(message) => {
                let delivery = self.start_delivery(sequence, true).await;
                let incoming = Arc::clone(&self.incoming);
                tokio::spawn(async move { delivery.answer(incoming.data(message).await) });
            }
            // These have no response.
            Body::AlertNotification(_) | Body::Outbind(_) => {}
            other => {
                let command = other.command();
                self.refuse(command, sequence, Status::ESME_RINVCMDID).await;
            }
        }
    }

    /// Waits for a permit to handle one more message. Nothing is read meanwhile.
    async fn start_delivery(&self, sequence: u32, data: bool) -> Delivery {
        let permits = Arc::clone(&self.permits);
        let permit = if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            permit
        } else {
            self.wait_for_permit(permits).await
        };
        Delivery::new(Arc::clone(&self.shared), sequence, data, permit)
    }

    async fn wait_for_permit(&self, permits: Arc<Semaphore>) -> OwnedSemaphorePermit {
        self.shared.pause();
        let permit = permits.acquire_owned().await;
        self.shared.resume();
        permit.expect("never closed")
    }

    async fn reply(&self, pdu: Pdu) {
        self.shared.reply(&pdu);
        while self.shared.has_too_many_replies() {
            self.shared.pause();
            self.shared.buffer_taken.notified().await;
            self.shared.resume();
        }
    }

    async fn refuse(&self, command: u32, sequence: u32, status: Status) {
        if command::is_response(command) {
            debug!(command, sequence, "ignored an unexpected answer");
            return;
        }
        self.reply(Pdu::with_status(status, sequence, Body::GenericNack))
            .await;
    }

    fn nack(&mut self, status: Status, sequence: u32) {
        if sequence == 0 {
            warn!(%status, "the SMSC could not read a PDU, and does not know which");
        } else if self.shared.lock().answered(sequence) {
            self.shared.changed.notify_one();
        } else {
            // A `generic_nack` is a refusal, whatever its status.
            let status = if status.is_ok() {
                Status::ESME_RUNKNOWNERR
            } else {
                status
            };
            self.answers
                .push((sequence, copy_answer(status, &MessageResp::default())));
        }
    }

    fn unbind(&self, sequence: u32) {
        let mut state = self.shared.lock();
        if matches!(state.phase, Phase::Open) {
            self.shared.window.close();
            let until = add_saturating(Instant::now(), self.shared.limits.response);
            state.phase = Phase::PeerUnbinding {
                sequence,
                until,
                answered: false,
            };
            self.shared.changed.notify_one();
        } else {
            // Both sides unbind.
            state.reply(&Pdu::new(sequence, Body::UnbindResp));
            self.shared.write_needed.notify_one();
        }
    }
}

/// Copies an answer, so that it does not keep the read buffer alive.
fn copy_answer(status: Status, resp: &MessageResp) -> SubmitAnswer {
    let tlvs: Tlvs = resp
        .tlvs
        .iter()
        .map(|(tag, value)| (tag, Bytes::copy_from_slice(value)))
        .collect();
    SubmitAnswer {
        status,
        message_id: Bytes::copy_from_slice(&resp.message_id),
        tlvs,
    }
}
