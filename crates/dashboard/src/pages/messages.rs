//! The list of messages, with filters.

pub(super) mod detail;
mod download;
mod filter;
mod timeline;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::Channel;
use domain::message::code::CATALOGUE;
use domain::ports::{Cursor, MessageSummary, Page, StateName};
use domain::{AccountId, MessageId, Money};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{HIDDEN, Moment, StateLabel, count, money, number, shorten};
use crate::kit::live::{self, Fragment};
use crate::kit::location::Locations;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::{Query, SAID};
use crate::kit::session::Member;
use download::Days;
use filter::Filters;

const PAGE_SIZE: u32 = 50;
const TEXT_CHARS: usize = 60;
const HERE: &str = "/dashboard/messages";

#[derive(Template)]
#[template(path = "messages.html")]
struct MessagesPage {
    frame: Frame,
    query: Query,
    filters: Filters,
    list: MessageList,
    download: Days,
    /// The address of live updates; only the first page has them.
    live: Option<String>,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "messages_list.html")]
struct ListPart {
    list: MessageList,
}

struct MessageList {
    rows: Vec<MessageRow>,
    is_filtered: bool,
    /// The address of the next page.
    older: Option<String>,
    /// The oldest message that was searched, if the search stopped before the page was full.
    looked_to: Option<String>,
}

struct MessageRow {
    id: String,
    at: Moment,
    to: String,
    location: String,
    from: String,
    text: String,
    channel: Channel,
    state: StateLabel,
    parts: u8,
    /// What was paid in the end.
    price: String,
    is_refunded: bool,
    is_test: bool,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show))
        .route("/dashboard/messages/live", get(follow))
        .route("/dashboard/messages/download", get(download::download))
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
    let query = query.without(SAID);
    let mut filters = Filters::read(&query);
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
    let status = match filters.problem {
        None => StatusCode::OK,
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let is_first = query.get("before").is_none() && filters.problem.is_none();
    let page = MessagesPage {
        frame,
        live: is_first.then(|| query.clone().at("/dashboard/messages/live").address()),
        list: dashboard
            .list(Reader::new(&member), &filters, &query)
            .await?,
        download: Days::of_month(dashboard.engine.now()),
        query,
        filters,
    };
    Ok(show_page(status, &page))
}

/// Live updates of the first page.
async fn follow(State(dashboard): State<Arc<Dashboard>>, member: Member, query: Query) -> Response {
    let query = query.at(HERE).without("before");
    let reader = Reader::new(&member);
    let filters = Arc::new(Filters::read(&query));
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

/// Who reads the list.
#[derive(Clone, Copy)]
struct Reader {
    account: AccountId,
    sees_texts: bool,
}

impl Reader {
    fn new(member: &Member) -> Self {
        Self {
            account: member.account.id,
            sees_texts: member.sees_texts(),
        }
    }
}

impl Dashboard {
    async fn list(
        &self,
        reader: Reader,
        filters: &Filters,
        query: &Query,
    ) -> Result<MessageList, Failure> {
        let is_filtered = filters.is_any;
        let before = match query.get("before").map(str::parse) {
            Some(Ok(id)) => Some(id),
            _ => None,
        };
        if filters.problem.is_some() {
            return Ok(MessageList {
                rows: Vec::new(),
                is_filtered,
                older: None,
                looked_to: None,
            });
        }
        let cursor = Cursor {
            before,
            limit: PAGE_SIZE,
        };
        let filter = filters.for_account(reader.account);
        let found = self.engine.history.search_messages(&filter, cursor).await?;
        Ok(self.message_list(found, reader, is_filtered, query))
    }

    fn message_list(
        &self,
        found: Page<MessageSummary, MessageId>,
        reader: Reader,
        is_filtered: bool,
        query: &Query,
    ) -> MessageList {
        let Page { rows, next } = found;
        let catalogues = self.engine.catalogues.live();
        let locations = Locations::new(&catalogues);
        let is_short = rows.len() < PAGE_SIZE as usize;
        let next = next.map(|id| id.to_string());
        MessageList {
            older: next
                .as_deref()
                .map(|id| query.address_with("before", Some(id))),
            looked_to: next.filter(|_| is_short),
            is_filtered,
            rows: rows
                .into_iter()
                .map(|row| self.row(row, reader, &locations))
                .collect(),
        }
    }

    fn row(
        &self,
        message: MessageSummary,
        reader: Reader,
        locations: &Locations<'_>,
    ) -> MessageRow {
        let text = if reader.sees_texts {
            shorten(&message.text, TEXT_CHARS)
        } else {
            HIDDEN.to_owned()
        };
        let is_refunded = message.refunded() != Money::ZERO;
        MessageRow {
            id: message.id.to_string(),
            at: message.accepted_at.into(),
            to: number(message.to),
            location: locations.short(message.to.as_ref(), message.network),
            from: message.from.unwrap_or_default(),
            text,
            channel: message.channel,
            state: message.state.into(),
            parts: message.parts,
            is_refunded,
            price: money(
                message.charged.unwrap_or(message.price),
                &self.settings.currency,
            ),
            is_test: message.test_mode.is_some(),
        }
    }
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
