//! What the caller's token may do.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use requests::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::caller::{AnyToken, Caller};
use super::document::Failure;

/// A token and the account that it acts for.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Token {
    /// The account's name.
    #[schema(example = "main")]
    account: String,
    /// What the token is called.
    name: String,
    /// The routes that it was granted.
    #[schema(example = json!(["sms:send", "sms:read"]))]
    permissions: Vec<&'static str>,
    /// The networks that it may be used from; empty means from anywhere.
    #[schema(example = json!(["192.0.2.0/24"]))]
    ips: Vec<String>,
    /// When it expires, RFC 3339; null when it does not.
    expires: Option<String>,
    /// The currency of the balance.
    #[schema(example = "EUR")]
    currency: String,
    /// What the account may still spend, as a decimal.
    #[schema(example = "100.00")]
    balance: String,
}

/// Describe the token of this request
///
/// Needs no permission: any valid token may ask about itself.
#[utoipa::path(
    get,
    path = "/token",
    tag = "Token",
    responses(
        (status = 200, description = "What this token may do.", body = Token),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The address is not on its list, or the account is suspended.", body = Failure),
    ),
)]
pub(super) async fn describe(
    State(rest): State<Arc<Rest>>,
    caller: Caller<AnyToken>,
) -> Result<Response, Problem> {
    let access = &caller.access;
    // The balance changes with each message, so it is read from the store; the rest comes from the cached token.
    let account = rest
        .engine
        .accounts
        .find_by_id(access.account)
        .await?
        .ok_or_else(Problem::internal)?;
    let token = Token {
        account: access.account_name.clone(),
        name: access.name.clone(),
        permissions: access
            .permissions
            .iter()
            .map(domain::Permission::name)
            .collect(),
        ips: access
            .allow
            .networks()
            .iter()
            .map(ToString::to_string)
            .collect(),
        expires: access.expires.map(|time| time.to_string()),
        currency: rest.settings.currency.clone(),
        balance: account.balance.to_string(),
    };
    Ok(axum::Json(token).into_response())
}
