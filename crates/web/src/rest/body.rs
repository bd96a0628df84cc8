//! JSON bodies of the API.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::Method;
use requests::Problem;
use requests::body::{check_content_type, read_within};

use super::Rest;

/// The bytes of a body that is declared as JSON.
pub(super) struct JsonBody(pub(super) Bytes);

impl FromRequest<Arc<Rest>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, rest: &Arc<Rest>) -> Result<Self, Problem> {
        // Only requests that are meant to have a body must say what it is.
        let is_json = match *request.method() {
            Method::GET | Method::HEAD => Ok(()),
            _ => check_content_type(request.headers()),
        };
        let body = read_within(request, rest.settings.body_bytes, rest.settings.body_time).await?;
        is_json?;
        Ok(Self(body))
    }
}
