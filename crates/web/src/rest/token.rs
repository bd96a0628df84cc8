//! What the caller's token may do.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use domain::billing::SpendingRules;
use domain::{Access, Money};
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
    /// The account's limits; only if the request asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<AccountLimits>,
}

/// What an account may do.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccountLimits {
    /// How far the balance may go below zero, as a decimal.
    #[serde(rename = "creditLimit")]
    #[schema(example = "0.00")]
    credit_limit: String,
    /// The most that may be charged on one UTC day, as a decimal; null without a cap.
    #[serde(rename = "dailyCap")]
    #[schema(example = "20.00")]
    daily_cap: Option<String>,
    /// What is left of the daily cap until midnight UTC, as a decimal; null without a cap.
    #[serde(rename = "leftToday")]
    #[schema(example = "19.955")]
    left_today: Option<String>,
    /// The most that this client may spend on one UTC day, as a decimal; null if its consent has no cap.
    #[serde(rename = "clientDailyCap")]
    client_daily_cap: Option<String>,
    /// How much the client may still spend until midnight UTC, as a decimal; null if it has no cap.
    #[serde(rename = "clientLeftToday")]
    client_left_today: Option<String>,
    /// The most messages that one recipient may get within an hour; null without a limit.
    #[serde(rename = "perRecipientHour")]
    per_recipient_hour: Option<u32>,
    /// The countries that the account may send to, ISO 3166-1 alpha-2; empty means all.
    #[schema(example = json!(["LV", "EE"]))]
    countries: Vec<String>,
    /// Whether messages must come from an approved sender ID.
    #[serde(rename = "approvedSendersOnly")]
    approved_senders_only: bool,
    /// The rate limit; null without one.
    #[serde(rename = "requestsPerSecond")]
    requests_per_second: Option<u32>,
}

impl AccountLimits {
    /// `left` is what the caps leave for today: that of the account, and that of the client.
    fn new(rules: &SpendingRules, access: &Access, left: [Option<Money>; 2]) -> Self {
        let [left_today, client_left] = left.map(|left| left.map(|left| left.to_string()));
        Self {
            credit_limit: rules.credit_limit.to_string(),
            daily_cap: rules.daily_cap.map(|cap| cap.to_string()),
            left_today,
            client_daily_cap: access.grant_cap.map(|cap| cap.daily.to_string()),
            client_left_today: client_left,
            per_recipient_hour: rules.per_recipient_hour,
            countries: rules
                .countries
                .as_slice()
                .iter()
                .map(ToString::to_string)
                .collect(),
            approved_senders_only: rules.approved_senders_only,
            requests_per_second: Some(rules.requests_per_second).filter(|limit| *limit > 0),
        }
    }
}

/// Describe the token of this request
///
/// Needs no permission: any valid token may ask about itself.
#[utoipa::path(
    get,
    path = "/token",
    operation_id = "readToken",
    tag = "Token",
    params(
        ("limits" = Option<String>, Query, description = "If present, the answer has `limits`; its value does not matter."),
    ),
    responses(
        (status = 200, description = "What this token may do.", body = Token),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The address is not on its list, or the account is suspended.", body = Failure),
    ),
)]
pub(super) async fn describe(
    State(rest): State<Arc<Rest>>,
    caller: Caller<AnyToken>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let access = &caller.access;
    // The balance changes with each message, so it is read from the store; the rest comes from the cached token.
    let account = rest
        .engine
        .accounts
        .find_by_id(access.account)
        .await?
        .ok_or_else(Problem::internal)?;
    let mut parameters = url::form_urlencoded::parse(query.as_deref().unwrap_or("").as_bytes());
    let limits = if parameters.any(|(name, _)| name == "limits") {
        let accounts = &rest.engine.accounts;
        let left = accounts.left_today(account.id).await?;
        let left_of_client = accounts.left_of_grant(access).await?;
        let left = [left, left_of_client];
        Some(AccountLimits::new(&account.rules, access, left))
    } else {
        None
    };
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
        limits,
    };
    Ok(axum::Json(token).into_response())
}
