//! Bodies that nobody wanted: a request that is refused by its head is answered before its body is read.
//!
//! Left unread, a body ends the connection without a word, and the caller's next request goes nowhere. So what is small
//! is read and dropped before the answer leaves; with any other the answer says that the connection ends.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// What is read of a body that nobody wanted.
const MAX_BYTES: usize = 64 * 1024;
/// The time for it to arrive.
const MAX_TIME: Duration = Duration::from_secs(1);

/// A body on its way through the routes. When they are done before its end, it comes back.
pub(super) struct Lent {
    body: Option<Incoming>,
    is_begun: bool,
    back: Option<Arc<Slot>>,
}

type Slot = Mutex<Option<Left>>;

/// What the routes left of a body.
enum Left {
    All(Incoming),
    /// Whoever began to read it has waited long enough, or read more than enough.
    Some,
}

/// Where a body comes back to.
pub(super) struct Return {
    slot: Arc<Slot>,
    is_small: bool,
}

/// Lends a request's body out. Without one there is nothing to come back.
pub(super) fn lend(request: Request<Incoming>) -> (Request<Lent>, Option<Return>) {
    let back = (!request.body().is_end_stream()).then(|| Return {
        slot: Arc::default(),
        is_small: is_small(request.headers()),
    });
    let slot = back.as_ref().map(|back| Arc::clone(&back.slot));
    let lent = |body| Lent {
        body: Some(body),
        is_begun: false,
        back: slot,
    };
    (request.map(lent), back)
}

/// Whether a body may be worth waiting for. Who waits to be asked for it has not sent it, and need not.
fn is_small(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    length.is_none_or(|length| length <= MAX_BYTES) && !headers.contains_key(EXPECT)
}

impl Return {
    /// Reads and drops what the routes left, once they are done. False: that is more than is worth it, so that the connection
    /// cannot go on.
    pub(super) async fn drop_it(self) -> bool {
        let left = {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take()
        };
        match left {
            None => true,
            Some(Left::All(body)) if self.is_small => {
                let read = tokio::time::timeout(MAX_TIME, read_to_its_end(body));
                read.await.unwrap_or(false)
            }
            Some(_) => false,
        }
    }
}

async fn read_to_its_end(mut body: Incoming) -> bool {
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        received += frame.data_ref().map_or(0, Bytes::len);
        if received > MAX_BYTES {
            return false;
        }
    }
    true
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        self.is_begun = true;
        if matches!(polled, Poll::Ready(None)) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), &self.back)
            && !body.is_end_stream()
        {
            let left = if self.is_begun {
                Left::Some
            } else {
                Left::All(body)
            };
            *back.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
        }
    }
}
