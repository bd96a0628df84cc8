//! The token and revocation endpoints.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::Permission;
use engine::identity::grants::{TokenAnswer, TokenParams};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use super::form::Form;
use super::refusal::Refusal;
use super::{OAuth, no_store, read_body};

/// Parameters that only clients with a secret send.
const SECRETS: [&str; 3] = ["client_secret", "client_assertion", "client_assertion_type"];

#[derive(Serialize)]
struct Tokens<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    refresh_token: &'a str,
    scope: String,
}

pub(super) async fn exchange(
    State(oauth): State<Arc<OAuth>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let from = oauth.address(&parts);
    let mut form = read_form(Request::from_parts(parts, body)).await?;
    let params = TokenParams {
        grant_type: form.take("grant_type"),
        client_id: form.take("client_id"),
        code: form.take("code"),
        redirect_uri: form.take("redirect_uri"),
        code_verifier: form.take("code_verifier"),
        refresh_token: form.take("refresh_token"),
        scope: form.take("scope"),
        resource: form.take("resource"),
    };
    let answer = oauth.grants().exchange(&params, from).await?;
    Ok(token_response(&answer))
}

pub(super) async fn revoke(
    State(oauth): State<Arc<OAuth>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let from = oauth.address(&parts);
    let mut form = read_form(Request::from_parts(parts, body)).await?;
    let token = form.take("token");
    let token = token.ok_or_else(|| Refusal::invalid_request("token is missing"))?;
    let client = form.take("client_id");
    let client = client.ok_or_else(|| Refusal::invalid_request("client_id is missing"))?;
    // The answer does not tell whether the token existed (RFC 7009, section 2.2).
    if oauth.grants().revoke(from, &token, &client).await? {
        Ok(no_store(StatusCode::OK.into_response()))
    } else {
        Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "unauthorized_client",
            "The token was given to another client.",
        ))
    }
}

async fn read_form(request: Request) -> Result<Form, Refusal> {
    let has_header = has_authorization(request.headers());
    let body = read_body(request, "application/x-www-form-urlencoded").await?;
    let form = Form::parse(&body)?;
    if has_header || SECRETS.iter().any(|name| form.contains(name)) {
        return Err(Refusal::has_secret(has_header));
    }
    Ok(form)
}

fn has_authorization(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION)
}

fn token_response(answer: &TokenAnswer) -> Response {
    let scopes: Vec<&str> = answer
        .scopes
        .iter()
        .copied()
        .map(Permission::name)
        .collect();
    let tokens = Tokens {
        access_token: answer.access_token.reveal(),
        token_type: "Bearer",
        expires_in: answer.expires_in_s,
        refresh_token: answer.refresh_token.reveal(),
        scope: scopes.join(" "),
    };
    no_store(axum::Json(tokens).into_response())
}
