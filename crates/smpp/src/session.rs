//! A client session: one connection to an SMSC, from the bind to its end.
//!
//! Three tasks share the state of a link: one reads, one writes, one watches the timers. Submitters encode into a
//! shared buffer, and the writer takes the whole buffer at once. So under load, each write carries more messages.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error;
use tokio::sync::{TryAcquireError, watch};

use crate::{BindResp, DataMessage, EncodeError, FatalLength, ShortMessage, Status, Tlvs};

mod clock;
mod connect;
mod delivery;
mod link;
mod options;
mod outstanding;
mod read;
mod run;
mod timers;
mod write;

pub use connect::ConnectError;
pub use options::{SessionOptions, Tls};

use link::{PendingSubmit, Shared};

/// Handles what an SMSC delivers.
#[async_trait]
pub trait Incoming: Send + Sync + 'static {
    /// Handles a message or a receipt. The SMSC gets the returned status, and delivers again what was not answered. A
    /// panic is answered with [`Status::ESME_RX_T_APPN`].
    async fn deliver(&self, message: Box<ShortMessage>) -> Status;

    /// Called whenever something comes from the SMSC.
    fn heard(&self) {}

    /// Handles a `data_sm`. Refused unless overridden.
    async fn data(&self, message: Box<DataMessage>) -> Status {
        drop(message);
        Status::ESME_RINVCMDID
    }
}

/// An SMSC's response to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitAnswer {
    /// Whether the SMSC accepted the message.
    pub status: Status,
    /// The SMSC's ID of the message; empty if it was refused.
    pub message_id: Bytes,
    /// The optional parameters.
    pub tlvs: Tlvs,
}

/// Why there is no response to a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The session has ended before any octet of the message was sent, so it is safe to send it elsewhere.
    #[error("the session has ended, and nothing was sent")]
    NotSent,
    /// The message was sent, but the link died or no answer came within [`SessionOptions::late_answer`]. The SMSC may
    /// have it.
    #[error("sent, but no answer came")]
    Unknown,
    /// The message cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EndReason {
    /// [`Session::unbind`] was called.
    #[error("unbound")]
    Unbound,
    /// No messages for [`SessionOptions::idle`].
    #[error("unbound after too long without a message")]
    Idle,
    /// The SMSC unbound.
    #[error("the SMSC unbound")]
    UnboundByPeer,
    /// The SMSC closed the connection without `unbind`.
    #[error("the SMSC closed the connection")]
    ClosedByPeer,
    /// The SMSC did not answer `enquire_link`.
    #[error("the SMSC did not answer enquire_link")]
    NotAnswering,
    /// The SMSC sent something that is not SMPP.
    #[error(transparent)]
    Length(#[from] FatalLength),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(String),
    /// The last handle was dropped.
    #[error("the session was dropped")]
    Dropped,
    /// The runtime stopped.
    #[error("the runtime stopped")]
    Stopped,
}

/// A bound session. Clones share it; it closes when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Session(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<EndReason>>,
    peer: BindResp,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.drop_link();
    }
}

impl Session {
    /// Connects and binds. The address is `host:port`.
    ///
    /// Needs a tokio runtime with time and I/O, on which it spawns its tasks.
    pub async fn connect(
        address: &str,
        options: SessionOptions,
        incoming: Arc<dyn Incoming>,
    ) -> Result<Self, ConnectError> {
        connect::connect(address, options, incoming).await
    }

    fn new(shared: Arc<Shared>, ended: watch::Receiver<Option<EndReason>>, peer: BindResp) -> Self {
        Self(Arc::new(Handle {
            shared,
            ended,
            peer,
        }))
    }

    /// Sends a message as soon as the window allows it, and waits for the answer.
    ///
    /// When cancelled after sending, the message occupies the window until its answer arrives or times out.
    pub async fn submit(&self, message: &ShortMessage) -> Result<SubmitAnswer, SubmitError> {
        let shared = &self.0.shared;
        // The semaphore is fair: this fails while others wait.
        let permit = match shared.window.try_acquire() {
            Err(TryAcquireError::NoPermits) => shared.window.acquire().await.ok(),
            permit => permit.ok(),
        };
        let mut permit = Some(permit.ok_or(SubmitError::NotSent)?);
        let mut pending: Option<PendingSubmit<'_>> = None;
        poll_fn(|context| {
            if let Some(pending) = &mut pending {
                return pending.poll(context);
            }
            match shared.submit(message, context.waker()) {
                Ok(submitted) => pending = Some(submitted),
                Err(error) => return Poll::Ready(Err(error)),
            }
            // The permit is returned when the answer arrives.
            if let Some(permit) = permit.take() {
                permit.forget();
            }
            Poll::Pending
        })
        .await
    }

    /// Whether the session accepts messages.
    pub fn is_open(&self) -> bool {
        self.0.shared.is_open()
    }

    /// The number of messages without an answer yet.
    pub fn in_flight(&self) -> usize {
        self.0.shared.in_flight()
    }

    /// The SMSC's response to the bind.
    pub fn peer(&self) -> &BindResp {
        &self.0.peer
    }

    /// Waits until the session has ended and its connection is closed.
    pub async fn closed(&self) -> EndReason {
        let mut ended = self.0.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(EndReason::Stopped),
            Err(_) => EndReason::Stopped,
        }
    }

    /// Ends the session gracefully: accepts no more messages, waits for outstanding answers, unbinds and closes. Each
    /// of the two waits takes at most [`SessionOptions::response_timeout`].
    pub async fn unbind(&self) {
        self.0.shared.begin_unbind();
        self.closed().await;
    }
}
