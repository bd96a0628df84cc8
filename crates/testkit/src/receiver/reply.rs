//! The answers of a script.

use std::time::Duration;

/// The answer to one request, decided by the script of [`super::ReceiverBuilder::script`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub(super) delay: Duration,
    pub(super) action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Sends these bytes and reads the next request.
    Send(Vec<u8>),
    /// Sends nothing and keeps the connection open until the other side closes it.
    Hang,
    /// Sends these bytes, possibly none, and closes the connection.
    Close(Vec<u8>),
}

impl Reply {
    /// `200` with the body `OK`, which means that the callback was received.
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
        Self::from(Action::Send(bytes))
    }

    /// Raw bytes, for redirects and malformed answers. If the head announces a longer body, the answer never ends.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::from(Action::Send(bytes.into()))
    }

    /// No answer; the connection stays open until the other side closes it.
    pub fn hang() -> Self {
        Self::from(Action::Hang)
    }

    /// No answer; the connection is closed.
    pub fn close() -> Self {
        Self::from(Action::Close(Vec::new()))
    }

    /// Closes the connection after the answer.
    #[must_use]
    pub fn then_close(mut self) -> Self {
        if let Action::Send(bytes) = self.action {
            self.action = Action::Close(bytes);
        }
        self
    }

    /// Waits before the answer, without delaying other connections.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl From<Action> for Reply {
    fn from(action: Action) -> Self {
        Self {
            delay: Duration::ZERO,
            action,
        }
    }
}
