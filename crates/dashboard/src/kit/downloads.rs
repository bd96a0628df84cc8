//! Downloads that take a while: they are streamed, and their number is limited, so that nobody's download delays the
//! pages of others.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::AccountId;
use domain::ports::StoreError;
use engine::reading::export::MessageExport;
use futures_util::{Stream, StreamExt as _};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use permits::{Permit, Permits};

use crate::kit::page::with_retry_after;

/// Downloads and reports of a process.
const MAX: usize = 8;
const MAX_PER_ACCOUNT: usize = 2;
const AGAIN_AFTER_S: u32 = 30;

/// Who a download counts against; operators without an account share one entry.
pub(crate) type Holder = Option<AccountId>;

/// The permits of downloads and of reports that read many messages.
pub(crate) struct Downloads(Arc<Permits<Holder>>);

impl Downloads {
    pub(crate) fn new() -> Self {
        Self(Permits::new(MAX, |_| MAX_PER_ACCOUNT))
    }

    /// A permit, or the answer that there is none.
    pub(crate) fn permit(&self, holder: Holder) -> Result<Permit<Holder>, Box<Response>> {
        self.0.try_acquire(&[holder]).ok_or_else(|| {
            let words =
                "Other downloads of this account are running. Try again when they are done.\n";
            let refused = (StatusCode::SERVICE_UNAVAILABLE, words).into_response();
            Box::new(with_retry_after(refused, AGAIN_AFTER_S))
        })
    }
}

/// The rows of an export as a file. A failure in the middle breaks the connection, so that the browser does not take
/// the file for complete.
pub(crate) fn stream(
    export: MessageExport,
    name: &str,
    content_type: &'static str,
    permit: Permit<Holder>,
) -> Response {
    let header = Some(export.header()).filter(|header| !header.is_empty());
    let first = futures_util::stream::iter(header.map(|header| Ok(Bytes::from(header))));
    // The permit is held as long as the stream exists.
    let rows = futures_util::stream::unfold(Some((export, permit)), |state| async {
        let (mut export, permit) = state?;
        match export.next().await {
            Ok(Some(chunk)) => Some((Ok(Bytes::from(chunk.text)), Some((export, permit)))),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, "a download was cut short");
                Some((Err(error), None))
            }
        }
    });
    (
        headers(name, content_type),
        Body::from_stream(first.chain(rows)),
    )
        .into_response()
}

/// A file whose text comes in chunks after a first line. A failure in the middle breaks the connection.
pub(crate) fn stream_text(
    name: &str,
    content_type: &'static str,
    first: impl Into<Bytes>,
    chunks: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
) -> Response {
    let first = futures_util::stream::iter([Ok(first.into())]);
    (
        headers(name, content_type),
        Body::from_stream(first.chain(chunks)),
    )
        .into_response()
}

/// A complete file.
pub(crate) fn file(name: &str, content_type: &'static str, text: String) -> Response {
    (headers(name, content_type), text).into_response()
}

fn headers(name: &str, content_type: &'static str) -> [(http::HeaderName, String); 4] {
    [
        (CONTENT_TYPE, content_type.to_owned()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
    ]
}
