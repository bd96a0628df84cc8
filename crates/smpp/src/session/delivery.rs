//! Messages from the SMSC that are being handled.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::link::{Phase, Shared};
use crate::{Body, MessageResp, Pdu, Status};

/// A message from the SMSC that is being handled. It is answered when this is dropped.
pub(super) struct Delivery {
    shared: Arc<Shared>,
    sequence: u32,
    data: bool,
    status: Status,
    _permit: OwnedSemaphorePermit,
}

impl Delivery {
    pub(super) fn new(
        shared: Arc<Shared>,
        sequence: u32,
        data: bool,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let mut state = shared.lock();
        state.handling += 1;
        let now = Instant::now();
        state.last_message = now;
        state.record_activity(now);
        drop(state);
        Self {
            shared,
            sequence,
            data,
            // The answer if the handler panics.
            status: Status::ESME_RX_T_APPN,
            _permit: permit,
        }
    }

    pub(super) fn answer(mut self, status: Status) {
        self.status = status;
    }
}

impl Drop for Delivery {
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
            self.shared.write_needed.notify_one();
        }
        if drained {
            self.shared.changed.notify_one();
        }
    }
}
