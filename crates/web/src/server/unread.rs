//! Unread bodies: a request that is refused by its headers is answered before its body is read.
//!
//! An unread body would make hyper close the connection silently, and the caller's next request would be lost. So a
//! small body is read and dropped before the answer; otherwise the answer says `Connection: close`.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// A larger body is not read.
const MAX_BYTES: usize = 64 * 1024;
const MAX_TIME: Duration = Duration::from_secs(1);

/// The body of a request, as routes see it. If a route drops it before its end, [`UnreadBody`] gets it back.
pub(super) struct RequestBody {
    body: Option<Incoming>,
    is_started: bool,
    back: Option<Arc<Slot>>,
}

type Slot = Mutex<Option<Unread>>;

enum Unread {
    Untouched(Incoming),
    /// A route began to read it and gave up, because it was too slow or too large.
    Partial,
}

/// Gets the body back that the routes did not read.
pub(super) struct UnreadBody {
    slot: Arc<Slot>,
    is_small: bool,
}

/// Wraps the body of a request. Returns `None` for a request without one.
pub(super) fn track(request: Request<Incoming>) -> (Request<RequestBody>, Option<UnreadBody>) {
    let back = (!request.body().is_end_stream()).then(|| UnreadBody {
        slot: Arc::default(),
        is_small: is_small(request.headers()),
    });
    let slot = back.as_ref().map(|back| Arc::clone(&back.slot));
    let wrap = |body| RequestBody {
        body: Some(body),
        is_started: false,
        back: slot,
    };
    (request.map(wrap), back)
}

/// Whether the body is worth reading. With `Expect`, the caller has not sent it yet.
fn is_small(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    length.is_none_or(|length| length <= MAX_BYTES) && !headers.contains_key(EXPECT)
}

impl UnreadBody {
    /// Reads and drops the rest of the body. Returns `false` if it is too large or too slow; the connection must close
    /// then.
    pub(super) async fn discard(self) -> bool {
        let left = {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.take()
        };
        match left {
            None => true,
            Some(Unread::Untouched(body)) if self.is_small => {
                let read = tokio::time::timeout(MAX_TIME, read_to_end(body));
                read.await.unwrap_or(false)
            }
            Some(_) => false,
        }
    }
}

async fn read_to_end(mut body: Incoming) -> bool {
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

impl Body for RequestBody {
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
        self.is_started = true;
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

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), &self.back)
            && !body.is_end_stream()
        {
            let left = if self.is_started {
                Unread::Partial
            } else {
                Unread::Untouched(body)
            };
            *back.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
        }
    }
}
