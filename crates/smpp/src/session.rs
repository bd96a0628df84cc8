//! A client's session: one connection to an SMSC, from the bind to its end.
//!
//! Three loops share the state of a link: one reads, one writes, one watches the time. Whoever submits puts the octets
//! into a buffer that all share, and the writing loop takes the whole buffer at once: the more is submitted, the more
//! goes into one write.

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
mod handled;
mod keep;
mod link;
mod options;
mod outstanding;
mod read;
mod run;
mod write;

pub use connect::ConnectError;
pub use options::{SessionOptions, Tls};

use link::{Begun, Shared};

/// What an SMSC brings.
#[async_trait]
pub trait Incoming: Send + Sync + 'static {
    /// A message or a receipt. The SMSC is answered with the status once this returns, not before; it brings again what
    /// was not answered. A panic is answered as [`Status::ESME_RX_T_APPN`].
    async fn deliver(&self, message: Box<ShortMessage>) -> Status;

    /// The same by `data_sm`. Refused unless this is overridden.
    async fn data(&self, message: Box<DataMessage>) -> Status {
        drop(message);
        Status::ESME_RINVCMDID
    }
}

/// What an SMSC said to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitAnswer {
    /// Whether it took the message.
    pub status: Status,
    /// Its ID for it; empty when refused.
    pub message_id: Bytes,
    /// The optional part.
    pub tlvs: Tlvs,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The session is at its end. Not an octet of this message has left: it may go another way.
    #[error("the session is at its end, and nothing was sent")]
    NotSent,
    /// It was sent, and then the link died, or no answer came for [`SessionOptions::late_answer`]. The SMSC may have it.
    #[error("sent, and no answer came")]
    Unknown,
    /// It cannot be sent as it is.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Ended {
    /// [`Session::unbind`] was called.
    #[error("unbound")]
    Unbound,
    /// No message for the time of [`SessionOptions::idle`].
    #[error("unbound after a long time without a message")]
    Idle,
    /// The SMSC unbound.
    #[error("the SMSC unbound")]
    UnboundByPeer,
    /// The SMSC closed the connection without a word.
    #[error("the SMSC closed the connection")]
    ClosedByPeer,
    /// The SMSC did not answer `enquire_link`.
    #[error("the SMSC did not answer enquire_link")]
    NotAnswering,
    /// What the SMSC sent is no SMPP any more.
    #[error(transparent)]
    Length(#[from] FatalLength),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(String),
    /// The last handle was dropped.
    #[error("nobody uses the session any more")]
    Dropped,
    /// The runtime stopped.
    #[error("the runtime stopped")]
    Stopped,
}

/// A session that is bound. Clones are the same session; it is closed when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Session(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<Ended>>,
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
    /// Needs a tokio runtime with time and I/O; the session lives in tasks of it.
    pub async fn connect(
        address: &str,
        options: SessionOptions,
        incoming: Arc<dyn Incoming>,
    ) -> Result<Self, ConnectError> {
        connect::connect(address, options, incoming).await
    }

    fn new(shared: Arc<Shared>, ended: watch::Receiver<Option<Ended>>, peer: BindResp) -> Self {
        Self(Arc::new(Handle {
            shared,
            ended,
            peer,
        }))
    }

    /// Sends a message, once the window has room, and waits for its answer.
    ///
    /// When this is cancelled after the message was sent, its place in the window stays taken until the answer comes or
    /// its time is over.
    pub async fn submit(&self, message: &ShortMessage) -> Result<SubmitAnswer, SubmitError> {
        let shared = &self.0.shared;
        // Those who wait are served first, so this passes nobody by.
        let room = match shared.window.try_acquire() {
            Err(TryAcquireError::NoPermits) => shared.window.acquire().await.ok(),
            room => room.ok(),
        };
        let mut room = Some(room.ok_or(SubmitError::NotSent)?);
        let mut begun: Option<Begun<'_>> = None;
        poll_fn(|context| {
            if let Some(begun) = &mut begun {
                return begun.poll(context);
            }
            match shared.submit(message, context.waker()) {
                Ok(place) => begun = Some(place),
                Err(error) => return Poll::Ready(Err(error)),
            }
            // Given back when the answer comes.
            if let Some(room) = room.take() {
                room.forget();
            }
            Poll::Pending
        })
        .await
    }

    /// Whether messages are taken.
    pub fn is_open(&self) -> bool {
        self.0.shared.is_open()
    }

    /// How many messages wait for their answer.
    pub fn in_flight(&self) -> usize {
        self.0.shared.in_flight()
    }

    /// What the SMSC said of itself when it took the bind.
    pub fn peer(&self) -> &BindResp {
        &self.0.peer
    }

    /// Waits until the session has ended and its connection is closed.
    pub async fn closed(&self) -> Ended {
        let mut ended = self.0.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ended::Stopped),
            Err(_) => Ended::Stopped,
        }
    }

    /// Ends the session in good order: takes no more messages, waits for the answers that are still to come, unbinds
    /// and closes. Each of the two waits lasts for [`SessionOptions::response_timeout`] at most.
    pub async fn unbind(&self) {
        self.0.shared.begin_unbind();
        self.closed().await;
    }
}
