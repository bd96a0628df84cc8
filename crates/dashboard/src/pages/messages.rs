//! The list of messages, with filters.

mod all;
pub(super) mod detail;
mod download;
mod filter;
mod found;
mod list;
mod timeline;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::Channel;
use domain::message::code::CATALOGUE;
use domain::ports::StateName;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::count;
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::{Query, SAID};
use crate::kit::session::Member;
use download::Days;
use filter::Filters;
use found::Totals;
use list::{MessageList, Reader};

const HERE: &str = "/dashboard/messages";

#[derive(Template)]
#[template(path = "messages.html")]
struct MessagesPage {
    frame: Frame,
    query: Query,
    filters: Filters,
    list: MessageList,
    totals: Option<Totals>,
    /// `None` on the page of all accounts.
    download: Option<Days>,
    /// The address of live updates; only the first page of an account has them.
    live: Option<String>,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "messages_list.html")]
struct ListPart {
    list: MessageList,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show))
        .route("/dashboard/messages/live", get(follow))
        .route("/dashboard/messages/download", get(download::download))
        .route(found::FILE, get(found::download))
        .route(all::HERE, get(all::show))
        .route(found::ALL_FILE, get(found::download_all))
        .merge(detail::routes())
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let mut frame = member.frame();
    if let Some(sent) = member.said_count(&query, "sent") {
        frame = frame.with_success(format!("{} messages were accepted.", count(sent)));
    }
    let query = query.without(SAID).without("account");
    let mut filters = dashboard.filters(&query);
    if let Some(id) = filters.id {
        if dashboard
            .engine
            .history
            .find_message_detail(Some(member.account.id), id)
            .await?
            .is_some()
        {
            return Ok(Redirect::to(&format!("{HERE}/{id}")).into_response());
        }
        filters.refuse("id", format!("This account has no message {id}."));
    }
    let is_first = query.get("before").is_none() && filters.problems.is_empty();
    let page = MessagesPage {
        frame,
        live: is_first.then(|| query.clone().at("/dashboard/messages/live").address()),
        list: dashboard
            .list(Reader::member(&member), &filters, &query)
            .await?,
        totals: dashboard
            .found_totals(Reader::member(&member), &filters, &query)
            .await?,
        download: Some(Days::of_month(dashboard.engine.now())),
        query,
        filters,
    };
    Ok(respond(&page))
}

fn respond(page: &MessagesPage) -> Response {
    let status = if page.filters.problems.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    show_page(status, page)
}

/// Live updates of the first page.
async fn follow(State(dashboard): State<Arc<Dashboard>>, member: Member, query: Query) -> Response {
    let query = query.at(HERE).without("before").without("account");
    let reader = Reader::member(&member);
    let filters = Arc::new(dashboard.filters(&query));
    let query = Arc::new(query);
    let own = dashboard.clone();
    live::stream(&dashboard, &member, move || {
        let (dashboard, filters, query) = (own.clone(), filters.clone(), query.clone());
        async move {
            let list = dashboard.list(reader, &filters, &query).await?;
            Ok(Fragment::render(&ListPart { list }))
        }
    })
    .await
}

impl MessagesPage {
    fn states() -> impl Iterator<Item = &'static str> {
        StateName::ALL.into_iter().map(StateName::name)
    }

    fn channels() -> impl Iterator<Item = &'static str> {
        Channel::ALL.into_iter().map(Channel::name)
    }

    fn codes() -> impl Iterator<Item = (u16, &'static str)> {
        let errors = CATALOGUE.iter().filter(|entry| entry.number > 0);
        errors.map(|entry| (entry.number, entry.words))
    }
}
