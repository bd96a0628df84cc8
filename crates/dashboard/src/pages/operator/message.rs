//! A message of any account, for whoever looks after the service.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::{Channel, MessageId};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Operator;
use crate::pages::messages::detail::Told;

#[derive(Template)]
#[template(path = "operator/message.html")]
struct Page {
    frame: Frame,
    id: MessageId,
    account: u64,
    account_name: String,
    told: Told,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let not_found = || Failure::NotFound(Box::new(operator.frame()));
    let id: MessageId = id.parse().map_err(|_| not_found())?;
    let story = dashboard.engine.history.find_story(None, id).await?;
    let story = story.ok_or_else(not_found)?;
    let account = story.summary.account;
    let mut names = dashboard.engine.accounts.names([account]).await?;
    let page = Page {
        frame: operator.frame(),
        id,
        account: account.get(),
        account_name: names.remove(&account).unwrap_or_default(),
        told: dashboard.told(story).alone(),
    };
    Ok(show_page(StatusCode::OK, &page))
}
