//! The messages of the SMSC that are being handled.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::link::{Phase, Shared};
use crate::{Body, MessageResp, Pdu, Status};

/// A message of the SMSC that is being handled. It is answered in any case.
pub(super) struct Handled {
    shared: Arc<Shared>,
    sequence: u32,
    data: bool,
    status: Status,
    _room: OwnedSemaphorePermit,
}

impl Handled {
    pub(super) fn new(
        shared: Arc<Shared>,
        sequence: u32,
        data: bool,
        room: OwnedSemaphorePermit,
    ) -> Self {
        let mut state = shared.lock();
        state.handling += 1;
        state.message_at = Instant::now();
        drop(state);
        Self {
            shared,
            sequence,
            data,
            // Should the handler panic.
            status: Status::ESME_RX_T_APPN,
            _room: room,
        }
    }

    pub(super) fn done(mut self, status: Status) {
        self.status = status;
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        let resp = MessageResp::default();
        let body = if self.data {
            Body::DataSmResp(resp)
        } else {
            Body::DeliverSmResp(resp)
        };
        let mut state = self.shared.lock();
        let first = state.reply(&Pdu::with_status(self.status, self.sequence, body));
        state.handling -= 1;
        let drained = state.handling == 0 && !matches!(state.phase, Phase::Open);
        drop(state);
        if first {
            self.shared.to_write.notify_one();
        }
        if drained {
            self.shared.changed.notify_one();
        }
    }
}
