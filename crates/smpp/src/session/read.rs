//! The loop that reads.

use std::sync::Arc;
use std::task::Waker;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::clock::later;
use super::handled::Handled;
use super::link::{Phase, Shared};
use super::{Ended, Incoming, SubmitAnswer};
use crate::decode::{Header, message_resp_in_place};
use crate::{Body, Decoder, FatalLength, Frame, MessageResp, Pdu, Status, Tlvs, command};

/// So much is asked of the connection in one read.
const READ_AT_ONCE: usize = 64 << 10;

/// Reads, and does what each PDU asks for.
pub(super) struct Reading {
    shared: Arc<Shared>,
    incoming: Arc<dyn Incoming>,
    room: Arc<Semaphore>,
    decoder: Decoder,
    /// Answers that were read together, to be brought together.
    answers: Vec<(u32, SubmitAnswer)>,
    wakers: Vec<Waker>,
}

impl Reading {
    pub(super) fn new(shared: Arc<Shared>, incoming: Arc<dyn Incoming>) -> Self {
        Self {
            room: Arc::new(Semaphore::new(shared.limits.incoming)),
            decoder: Decoder::new(shared.limits.max_pdu),
            answers: Vec::new(),
            wakers: Vec::new(),
            shared,
            incoming,
        }
    }

    /// Until the connection ends, beginning with what was read before.
    pub(super) async fn run<R: AsyncRead + Unpin>(
        mut self,
        mut reader: R,
        mut buffer: BytesMut,
    ) -> Ended {
        loop {
            if let Err(fatal) = self.take(&mut buffer).await {
                return fatal.into();
            }
            buffer.reserve(READ_AT_ONCE);
            match reader.read_buf(&mut buffer).await {
                Ok(0) => return Ended::ClosedByPeer,
                Ok(_) => self.shared.lock().heard = Instant::now(),
                Err(error) => return Ended::Io(error.to_string()),
            }
        }
    }

    /// All PDUs that are there.
    async fn take(&mut self, buffer: &mut BytesMut) -> Result<(), FatalLength> {
        loop {
            let read = self.take_answers(buffer);
            // Before anything that may wait, and before the end.
            self.shared.answer(&mut self.answers, &mut self.wakers);
            read?;
            match self.decoder.next(buffer)? {
                Some(Frame::Ok(pdu)) => self.pdu(pdu).await,
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

    /// The plain answers at the start of the buffer, without a detour: they are most of what is read.
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
            let header = Header::of(frame);
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

    async fn pdu(&mut self, pdu: Pdu) {
        let Pdu {
            status,
            sequence,
            body,
        } = pdu;
        match body {
            Body::SubmitSmResp(resp) => self.answers.push((sequence, kept(status, &resp))),
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
                let handled = self.handled(sequence, false).await;
                let incoming = Arc::clone(&self.incoming);
                tokio::spawn(async move { handled.done(incoming.deliver(message).await) });
            }
            Body::DataSm(message) => {
                let handled = self.handled(sequence, true).await;
                let incoming = Arc::clone(&self.incoming);
                tokio::spawn(async move { handled.done(incoming.data(message).await) });
            }
            // These have no answer, and nobody waits for them.
            Body::AlertNotification(_) | Body::Outbind(_) => {}
            other => {
                let command = other.command();
                self.refuse(command, sequence, Status::ESME_RINVCMDID).await;
            }
        }
    }

    /// Room for one more message to be handled. Nothing is read meanwhile.
    async fn handled(&self, sequence: u32, data: bool) -> Handled {
        let room = Arc::clone(&self.room);
        let room = if let Ok(room) = Arc::clone(&room).try_acquire_owned() {
            room
        } else {
            self.wait_for_room(room).await
        };
        Handled::new(Arc::clone(&self.shared), sequence, data, room)
    }

    async fn wait_for_room(&self, room: Arc<Semaphore>) -> OwnedSemaphorePermit {
        self.shared.pause();
        let room = room.acquire_owned().await;
        self.shared.resume();
        room.expect("never closed")
    }

    async fn reply(&self, pdu: Pdu) {
        self.shared.reply(&pdu);
        while self.shared.is_held_up() {
            self.shared.pause();
            self.shared.taken.notified().await;
            self.shared.resume();
        }
    }

    async fn refuse(&self, command: u32, sequence: u32, status: Status) {
        if command::is_response(command) {
            debug!(command, sequence, "an answer that nobody waits for");
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
            // It says no, whatever the status says.
            let status = if status.is_ok() {
                Status::ESME_RUNKNOWNERR
            } else {
                status
            };
            self.answers
                .push((sequence, kept(status, &MessageResp::default())));
        }
    }

    fn unbind(&self, sequence: u32) {
        let mut state = self.shared.lock();
        if matches!(state.phase, Phase::Open) {
            self.shared.window.close();
            let until = later(Instant::now(), self.shared.limits.response);
            state.phase = Phase::PeerUnbinding {
                sequence,
                until,
                answered: false,
            };
            self.shared.changed.notify_one();
        } else {
            // Both want to end it.
            state.reply(&Pdu::new(sequence, Body::UnbindResp));
            self.shared.to_write.notify_one();
        }
    }
}

/// An answer that does not keep the memory it was read into.
fn kept(status: Status, resp: &MessageResp) -> SubmitAnswer {
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
