//! The overview of an account.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::TokenRecord;
use http::StatusCode;

use super::Dashboard;
use super::page::{Failure, Frame, notice_with, show as show_page};
use super::return_path::ReturnPath;
use super::visit::Visit;

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
    visit: Visit,
) -> Result<Response, Failure> {
    let home = ReturnPath::parse(None);
    let (session, signed_in) = dashboard.signed_in(&visit, &home).await?;
    let frame = Frame::of(session, &signed_in, &home);
    let accounts = &dashboard.engine.accounts;
    let record = match signed_in.account() {
        Some(account) => accounts.find_by_id(account).await?,
        None => None,
    };
    let Some(record) = record else {
        return Ok(notice_with(
            frame,
            StatusCode::NOT_FOUND,
            "No account",
            "You do not belong to an account, so there is nothing to show here.",
            None,
        ));
    };
    let tokens = accounts.list_tokens(Some(record.id)).await?;
    let page = Overview {
        frame,
        account: record.name,
        is_suspended: record.suspended,
        balance: format!("{} {}", record.balance, dashboard.settings.currency),
        base_url: dashboard.settings.base_url.clone(),
        offers_password: signed_in.person().is_none(),
        tokens: tokens.into_iter().map(TokenRow::from).collect(),
    };
    Ok(show_page(StatusCode::OK, &page))
}
