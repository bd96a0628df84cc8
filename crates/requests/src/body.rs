//! Reading the body of a request within its limits.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;

use crate::Problem;

/// A larger body is read and dropped up to this size, because most callers read the answer only after sending.
const MAX_DROPPED_BYTES: usize = 16 * 1024 * 1024;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("The body is larger than {limit} bytes; send less at a time.")]
    TooLarge { limit: usize },
    #[error("The body did not arrive within {} s.", .time.as_secs())]
    TooSlow { time: Duration },
    #[error("The body ended before it was complete.")]
    CutOff,
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Reads the body of a request, up to a size and within a time.
pub async fn read_within(
    request: Request,
    limit: usize,
    time: Duration,
) -> Result<Bytes, BodyError> {
    let (parts, body) = request.into_parts();
    read_body_within(&parts.headers, body, limit, time).await
}

/// [`read_within`] for a request that is already split into head and body.
pub async fn read_body_within(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    time: Duration,
) -> Result<Bytes, BodyError> {
    let announced = announced_bytes(headers);
    let read = tokio::time::timeout(time, read(body, limit, announced)).await;
    read.map_err(|_| BodyError::TooSlow { time })?
}

/// Refuses a body that is not declared as JSON.
pub fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Err(Problem::bad_request(
            "The header Content-Type is missing; send application/json.",
        ));
    };
    let text = value.to_str().unwrap_or("");
    let essence = text.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let shown = domain::quoted::Quoted(text);
    Err(Problem::bad_request(format!(
        "The Content-Type {shown} is not taken; send application/json."
    )))
}

fn announced_bytes(headers: &HeaderMap) -> usize {
    headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

async fn read(mut body: Body, limit: usize, announced: usize) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::CutOff)?.into_data() else {
            continue;
        };
        received += data.len();
        if received > limit {
            if received > MAX_DROPPED_BYTES || announced > MAX_DROPPED_BYTES {
                break;
            }
            continue;
        }
        if first.is_empty() && whole.is_empty() {
            // Nearly every body arrives in one piece, and then nothing is copied.
            first = data;
        } else {
            if whole.is_empty() {
                whole.reserve(announced.min(limit).max(first.len() + data.len()));
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&data);
        }
    }
    if received > limit {
        return Err(BodyError::TooLarge { limit });
    }
    Ok(if whole.is_empty() {
        first
    } else {
        whole.freeze()
    })
}
