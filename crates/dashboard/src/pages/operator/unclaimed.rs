//! Inbound messages to numbers that nobody owns.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::MessageId;
use domain::ports::InboundOwner;
use http::StatusCode;

use super::in_address;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Operator;
use crate::pages::inbox::filter::Filters;
use crate::pages::inbox::list::{InboundList, Reader};
use crate::pages::inbox::message::InboundView;

const HERE: &str = "/dashboard/operator/unclaimed";

#[derive(Template)]
#[template(path = "operator/unclaimed.html")]
struct UnclaimedPage {
    frame: Frame,
    query: Query,
    filters: Filters,
    list: InboundList,
}

#[derive(Template)]
#[template(path = "operator/unclaimed_message.html")]
struct MessagePage {
    frame: Frame,
    id: MessageId,
    message: InboundView,
    /// The form that gives the number to an account.
    give: String,
}

pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let filters = Filters::read(&query);
    let status = if filters.problems.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let reader = Reader {
        owner: InboundOwner::Nobody,
        sees_texts: true,
        has_conversations: false,
        page: HERE,
    };
    let page = UnclaimedPage {
        frame: operator.frame(),
        list: dashboard.inbound_list(reader, &filters, &query).await?,
        query,
        filters,
    };
    Ok(show_page(status, &page))
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let missing = || Failure::NotFound(Box::new(operator.frame()));
    let id: MessageId = id.parse().map_err(|_| missing())?;
    let found = dashboard.engine.numbers.find_message(None, id).await?;
    // Those of accounts are on the accounts' own pages, which may hide texts from operators.
    let message = found.filter(|message| message.account.is_none());
    let message = message.ok_or_else(missing)?;
    let number = in_address(&message.to.to_string());
    let page = MessagePage {
        frame: operator.frame(),
        id,
        give: format!("/dashboard/operator/numbers?number={number}"),
        message: dashboard.inbound_view(&message, true),
    };
    Ok(show_page(StatusCode::OK, &page))
}
