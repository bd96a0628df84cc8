//! One-time codes as a service: sending them, and checking what people enter.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use domain::quoted::Quoted;
use domain::verify::{NotACode, VerificationState};
use domain::{Timestamp, VerificationId};
use engine::verify::VerifyInput;
use http::HeaderMap;
use requests::{InvalidField, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::JsonBody;
use super::caller::{Caller, VerifySend};
use super::document::{CheckRequest, Failure, VerifyRequest};
use super::json::{Fields, Value, require};
use super::shapes::VerificationStateName;
use super::{Rest, sms};

/// A code that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SentCode {
    /// The ID by which the code is checked.
    #[schema(example = 123)]
    id: u64,
    /// The number, with a leading plus sign.
    #[schema(example = "+37120000001")]
    to: String,
    /// Until when the code is valid, RFC 3339.
    #[schema(format = DateTime, example = "2030-01-31T09:30:00Z")]
    expires: String,
}

/// Send a one-time code
///
/// Sends a code by SMS, which costs what any SMS costs. A pending code for the same number is replaced, once it is 30
/// seconds old. A number gets at most 5 codes in an hour and 10 in a day.
#[utoipa::path(
    post,
    path = "/verify",
    operation_id = "sendCode",
    tag = "Verify",
    request_body = VerifyRequest,
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$", description = "Makes a repeated request harmless, as in `POST /sms`."),
    ),
    responses(
        (status = 200, description = "The code is on its way.", body = SentCode, links(
            ("check" = (operation_id = "checkCode", parameters(("id" = "$response.body#/id")), description = "Checks what the person entered.")),
            ("status" = (operation_id = "readVerification", parameters(("id" = "$response.body#/id")), description = "The state of the verification.")),
        )),
        (status = 400, description = "A field breaks a rule; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token does not have `verify:send`, the recipient opted out or is blocked, or the account is suspended, cannot pay, or may not send there or under this sender.", body = Failure),
        (status = 409, description = "A code was sent to this number less than 30 seconds ago, or the Idempotency-Key was used with another body.", body = Failure),
        (status = 429, description = "The number got, or the account had sent, as many codes as they may, or nearly no code to such numbers is entered; `Retry-After` says when to try again.", body = Failure),
        (status = 503, description = "Overloaded or without its database; `Retry-After` says when to try again.", body = Failure),
    ),
)]
pub(super) async fn start(
    State(rest): State<Arc<Rest>>,
    caller: Caller<VerifySend>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let repeatable = sms::repeatable(&headers, &body)?;
    let input = read_input(Fields::parse(&body)?)?;
    let verify = &rest.engine.verify;
    let sent = verify.start(&caller.access, input, repeatable).await;
    let sent = sent.map_err(|error| Problem::from_verification(error, &rest.settings.currency))?;
    let answer = SentCode {
        id: sent.id.get(),
        to: sent.to.to_string(),
        expires: rfc_3339(sent.expires_at),
    };
    Ok(axum::Json(answer).into_response())
}

fn read_input(mut fields: Fields<'_>) -> Result<VerifyInput<'_>, InvalidField> {
    let input = VerifyInput {
        to: require(fields.take_digits("to")?, "to", "the recipient's number")?,
        from: fields.take_digits("from")?,
        length: fields.take_whole("length")?,
        expire_in: fields.take_whole("expireIn")?,
        message: fields.take_text("message")?,
        correct_by: fields.take_text("correctBy")?,
    };
    Ok(input)
}

/// A code that was entered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckedCode {
    /// The ID of the verification.
    #[schema(example = 123)]
    id: u64,
    /// Always `approved`.
    #[schema(example = "approved")]
    status: &'static str,
}

/// Check what a person entered
///
/// A code works once, and for five tries. A text that is no code costs no try.
#[utoipa::path(
    post,
    path = "/verify/{id}/check",
    operation_id = "checkCode",
    tag = "Verify",
    params(("id" = u64, Path, minimum = 1, description = "The ID that sending returned.", example = 123)),
    request_body = CheckRequest,
    responses(
        (status = 200, description = "It is the code that was sent.", body = CheckedCode),
        (status = 400, description = "It is no code, or wrong; then the message says how many tries are left.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token does not have `verify:send`.", body = Failure),
        (status = 404, description = "This account has no such verification.", body = Failure),
        (status = 409, description = "The code has expired, was replaced, was entered before, or its tries are used up.", body = Failure),
    ),
)]
pub(super) async fn check(
    State(rest): State<Arc<Rest>>,
    caller: Caller<VerifySend>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let id = read_id(path)?;
    let code = read_code(Fields::parse(&body)?)?;
    let account = caller.access.account;
    rest.engine.verify.check(account, id, &code).await?;
    let answer = CheckedCode {
        id: id.get(),
        status: VerificationState::Approved.name(),
    };
    Ok(axum::Json(answer).into_response())
}

/// The error does not repeat the value, because it may be most of a code.
fn read_code(mut fields: Fields<'_>) -> Result<Cow<'_, str>, InvalidField> {
    match require(fields.take("code"), "code", "the digits")? {
        Value::Text(code) => Ok(code),
        Value::Whole(code) => Ok(code.to_string().into()),
        _ => Err(InvalidField::new("code", NotACode)),
    }
}

/// A verification.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VerificationStatus {
    /// Its ID.
    #[schema(example = 123)]
    id: u64,
    /// The number, with a leading plus sign.
    #[schema(example = "+37120000001")]
    to: String,
    /// `pending`, `approved`, `expired` (or replaced by a newer one) or `failed` (too many wrong codes).
    #[schema(value_type = VerificationStateName)]
    status: &'static str,
    /// Until when the code is valid, RFC 3339.
    #[schema(format = DateTime, example = "2030-01-31T09:30:00Z")]
    expires: String,
}

/// Read a verification's state
#[utoipa::path(
    get,
    path = "/verify/{id}",
    operation_id = "readVerification",
    tag = "Verify",
    params(("id" = u64, Path, minimum = 1, description = "The ID that sending returned.", example = 123)),
    responses(
        (status = 200, description = "The verification.", body = VerificationStatus),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token does not have `verify:send`.", body = Failure),
        (status = 404, description = "This account has no such verification.", body = Failure),
    ),
)]
pub(super) async fn find(
    State(rest): State<Arc<Rest>>,
    caller: Caller<VerifySend>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let id = read_id(path)?;
    let found = rest.engine.verify.find(caller.access.account, id).await?;
    let found = found.ok_or_else(|| unknown(&id.to_string()))?;
    let answer = VerificationStatus {
        id: found.id.get(),
        to: found.to.to_string(),
        status: found.state.name(),
        expires: rfc_3339(found.expires_at),
    };
    Ok(axum::Json(answer).into_response())
}

/// Invalid text in the path is an unknown verification.
fn read_id(path: Result<Path<String>, PathRejection>) -> Result<VerificationId, Problem> {
    let text = path.map_or_else(|_| String::new(), |Path(text)| text);
    text.parse().map_err(|_| unknown(&text))
}

fn unknown(id: &str) -> Problem {
    Problem::not_found(format!("There is no verification {}.", Quoted(id)))
}

fn rfc_3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
