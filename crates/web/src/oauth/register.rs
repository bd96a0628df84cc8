//! Dynamic client registration (RFC 7591).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::oauth::RedirectUri;
use http::StatusCode;
use serde_json::json;

use super::refusal::Refusal;
use super::{OAuth, no_store, read_body};

pub(super) async fn register(
    State(oauth): State<Arc<OAuth>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let from = oauth.address(&parts);
    let body = read_body(Request::from_parts(parts, body), "application/json").await?;
    let registered = oauth.grants().register(&body, from).await?;
    let client = &registered.client;
    let redirects: Vec<&str> = client.redirects.iter().map(RedirectUri::as_str).collect();
    // The answer has the granted values, not the requested ones.
    let answer = json!({
        "client_id": client.id,
        "client_id_issued_at": registered.issued_at.as_second(),
        "client_name": client.name.as_str(),
        "redirect_uris": redirects,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let answer = (StatusCode::CREATED, axum::Json(answer)).into_response();
    Ok(no_store(answer))
}
