//! The overview of an account.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::TokenRecord;
use http::StatusCode;

use super::Dashboard;
use super::page::{Failure, Frame, show as show_page};
use super::shown::money;
use super::visitor::Member;

/// How times are shown.
const TIME: &str = "%Y-%m-%d %H:%M UTC";

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    account: String,
    is_suspended: bool,
    balance: String,
    base_url: String,
    offers_password: bool,
    tokens: Vec<TokenRow>,
}

struct TokenRow {
    id: u64,
    name: String,
    permissions: String,
    networks: String,
    expires: Option<String>,
}

impl From<TokenRecord> for TokenRow {
    fn from(token: TokenRecord) -> Self {
        Self {
            id: token.id.get(),
            name: token.access.name,
            permissions: token.access.permissions.to_names(),
            networks: token.access.allow.to_string(),
            expires: token
                .access
                .expires
                .map(|time| time.strftime(TIME).to_string()),
        }
    }
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
) -> Result<Response, Failure> {
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(member.account.id)).await?;
    let page = Overview {
        frame: member.frame(),
        account: member.account.name.clone(),
        is_suspended: member.account.suspended,
        balance: money(member.account.balance, &dashboard.settings.currency),
        base_url: dashboard.settings.base_url.clone(),
        offers_password: member.signed_in.person().is_none(),
        tokens: tokens.into_iter().map(TokenRow::from).collect(),
    };
    Ok(show_page(StatusCode::OK, &page))
}
