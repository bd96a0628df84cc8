//! The detail of a message of any account.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::{Channel, MessageId, Role};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Operator;
use crate::pages::messages::detail::MessageView;

#[derive(Template)]
#[template(path = "operator/message.html")]
struct MessagePage {
    frame: Frame,
    id: MessageId,
    account: u64,
    account_name: String,
    message: MessageView,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let not_found = || Failure::NotFound(Box::new(operator.frame()));
    let id: MessageId = id.parse().map_err(|_| not_found())?;
    let detail = dashboard
        .engine
        .history
        .find_message_detail(None, id)
        .await?;
    let detail = detail.ok_or_else(not_found)?;
    let account = detail.summary.account;
    let record = dashboard.engine.accounts.find_by_id(account).await?;
    let rules = record.as_ref().map(|record| &record.rules);
    let sees_texts = rules.is_none_or(|rules| rules.texts_for.includes(Role::Operator));
    let page = MessagePage {
        frame: operator.frame(),
        id,
        account: account.get(),
        account_name: record.map(|record| record.name).unwrap_or_default(),
        message: dashboard.message_view(detail, sees_texts).without_links(),
    };
    Ok(show_page(StatusCode::OK, &page))
}
