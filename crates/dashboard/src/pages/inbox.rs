//! Messages from handsets to the numbers of an account.

mod conversation;
pub(super) mod filter;
pub(super) mod list;
pub(super) mod message;
mod numbers;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::ports::InboundOwner;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;
use filter::Filters;
use list::{InboundList, ListPart, Reader};

const HERE: &str = "/dashboard/inbox";

#[derive(Template)]
#[template(path = "inbox/inbox.html")]
struct InboxPage {
    frame: Frame,
    query: Query,
    filters: Filters,
    list: InboundList,
    /// Whether it updates itself: the first page, without filters.
    is_live: bool,
    /// Whether the person can send a text from a simulated handset.
    has_simulated_handset: bool,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show))
        .route("/dashboard/inbox/live", get(follow))
        .route("/dashboard/inbox/numbers", get(numbers::show))
        .route("/dashboard/inbox/{id}", get(message::show))
        .merge(conversation::routes())
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let filters = Filters::read(&query);
    let status = if filters.problems.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let page = InboxPage {
        frame: member.frame(),
        is_live: query.get("before").is_none() && !filters.is_any,
        list: dashboard
            .inbound_list(reader(&member), &filters, &query)
            .await?,
        has_simulated_handset: member.is_operator() && dashboard.engine.is_simulated(),
        query,
        filters,
    };
    Ok(show_page(status, &page))
}

/// Live updates of the first page. A filter may have to read the whole inbox, so filtered lists are not live.
async fn follow(State(dashboard): State<Arc<Dashboard>>, member: Member) -> Response {
    let query = Arc::new(Query::new(HERE, ""));
    let filters = Arc::new(Filters::read(&query));
    let reader = reader(&member);
    let own = dashboard.clone();
    live::stream(&dashboard, &member, move || {
        let (dashboard, filters, query) = (own.clone(), filters.clone(), query.clone());
        async move {
            let list = dashboard.inbound_list(reader, &filters, &query).await?;
            Ok(Fragment::render(&ListPart { list }))
        }
    })
    .await
}

fn reader(member: &Member) -> Reader {
    Reader {
        owner: InboundOwner::Account(member.account.id),
        sees_texts: member.sees_texts(),
        has_conversations: true,
        page: HERE,
    }
}
