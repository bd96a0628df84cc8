//! What a script may do with a request.

use std::time::Duration;

/// The answer to one request, made by [`super::ReceiverBuilder::script`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub(super) delay: Duration,
    pub(super) act: Act,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Sends these bytes and reads the next request.
    Send(Vec<u8>),
    /// Sends nothing and stays until the other side goes.
    Hang,
    /// Sends these bytes, perhaps none, and hangs up.
    Close(Vec<u8>),
}

impl Reply {
    /// `200` with the body `OK`: what counts as received.
    pub fn ok() -> Self {
        Self::answer(200, "OK")
    }

    /// This status with this body.
    pub fn answer(status: u16, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let bytes = [head.as_bytes(), body].concat();
        Self::from(Act::Send(bytes))
    }

    /// These bytes as they are, for redirects and for answers that are none. With a head that
    /// promises more body than follows, the answer never ends.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::from(Act::Send(bytes.into()))
    }

    /// No answer; the connection stays open until the other side closes it.
    pub fn hang() -> Self {
        Self::from(Act::Hang)
    }

    /// No answer; the connection is closed.
    pub fn close() -> Self {
        Self::from(Act::Close(Vec::new()))
    }

    /// Closes the connection behind the answer.
    #[must_use]
    pub fn then_close(mut self) -> Self {
        if let Act::Send(bytes) = self.act {
            self.act = Act::Close(bytes);
        }
        self
    }

    /// Waits first, without holding up other connections.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl From<Act> for Reply {
    fn from(act: Act) -> Self {
        Self {
            delay: Duration::ZERO,
            act,
        }
    }
}
