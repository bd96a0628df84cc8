//! Callbacks: to whom, how each try went, and sending them again.

mod filter;
mod replaying;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use domain::CallbackId;
use domain::delivery::{CallbackAttempt, CallbackKind};
use domain::ports::{CallbackRecord, CallbackState, CallbackSubject, Counted, Look, Receiver};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;
use filter::Filters;
use words::{body_words, kind_words, state_word};

/// The rows of a page.
const PAGE: u32 = 50;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/callbacks", get(list))
        .route(
            "/dashboard/callbacks/replay",
            get(replaying::ask).post(replaying::replay),
        )
        .route("/dashboard/callbacks/{id}", get(show))
        .route(
            "/dashboard/callbacks/{id}/replay",
            post(replaying::replay_one),
        )
}

#[derive(Template)]
#[template(path = "callbacks/list.html")]
struct CallbacksPage {
    frame: Frame,
    filters: Filters,
    states: [(&'static str, &'static str); 5],
    receivers: Vec<ReceiverRow>,
    rows: Vec<Row>,
    older: Option<String>,
    is_first: bool,
    replay: Option<String>,
}

struct ReceiverRow {
    host: String,
    show: String,
    replay: String,
    waiting: String,
    parked: String,
    oldest: Option<Moment>,
    reason: Option<String>,
}

impl From<Receiver> for ReceiverRow {
    fn from(receiver: Receiver) -> Self {
        // With the slash, so that one whose name goes on is not meant, too.
        let start = format!("{}/", receiver.address);
        let address = |path| filter::address(path, &[("url", &start)]);
        Self {
            show: address("/dashboard/callbacks"),
            replay: address("/dashboard/callbacks/replay"),
            host: receiver.host,
            waiting: counted(receiver.waiting),
            parked: counted(receiver.parked),
            oldest: receiver.oldest_at.map(Moment::from),
            reason: receiver.last_reason,
        }
    }
}

fn counted(counted: Counted) -> String {
    let number = count(counted.0.into());
    if counted.is_capped() {
        format!("{number} or more")
    } else {
        number
    }
}

/// A callback, as the list and its own page show it.
struct Row {
    id: u64,
    kind: &'static str,
    /// What it is about: what to call that, and its page.
    about: (String, String),
    url: String,
    state: &'static str,
    due: Option<Moment>,
    tries: String,
    reason: Option<String>,
    created: Moment,
}

impl From<&CallbackRecord> for Row {
    fn from(callback: &CallbackRecord) -> Self {
        Self {
            id: callback.id.get(),
            kind: kind_words(callback.kind),
            about: about(callback),
            url: callback.url.clone(),
            state: state_word(callback.state),
            due: match callback.state {
                CallbackState::Waiting { due_at } => Some(due_at.into()),
                CallbackState::Parked | CallbackState::Done => None,
            },
            tries: match callback.tries {
                1 => "1 try".to_owned(),
                many => format!("{} tries", count(many.into())),
            },
            reason: callback.last.as_ref().map(|last| last.reason.clone()),
            created: callback.created_at.into(),
        }
    }
}

/// What a callback is about.
fn about(callback: &CallbackRecord) -> (String, String) {
    let (label, page, id) = match (callback.about, callback.kind) {
        (CallbackSubject::Sender(id), _) => ("sender", "senders", id.get()),
        (CallbackSubject::Message(id), CallbackKind::Lookup) => ("lookup", "lookups", id.get()),
        (CallbackSubject::Message(id), _) => ("message", "messages", id.get()),
    };
    (format!("{label} {id}"), format!("/dashboard/{page}/{id}"))
}

async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let account = member.account.id;
    let filters = Filters::read(&query);
    let before: Option<CallbackId> = query.get("before").and_then(|id| id.parse().ok());
    let receivers = dashboard
        .engine
        .operations
        .list_receivers(Some(account))
        .await?;
    let reports = &dashboard.engine.reports;
    let look = Look {
        before,
        limit: PAGE,
    };
    let found = reports.look_for(&filters.of(account), look).await?;
    let rows = found.rows.iter().filter(|row| filters.takes(row.state));
    let status = if filters.problem.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let older = found.next.map(|next| next.to_string());
    let page = CallbacksPage {
        frame: member.frame(),
        receivers: receivers.into_iter().map(ReceiverRow::from).collect(),
        rows: rows.map(Row::from).collect(),
        older: older.map(|id| query.address_with("before", Some(&id))),
        is_first: before.is_none(),
        replay: filters.replay_address(),
        states: filter::STATES,
        filters,
    };
    Ok(show_page(status, &page))
}

#[derive(Template)]
#[template(path = "callbacks/callback.html")]
struct CallbackPage {
    frame: Frame,
    callback: Row,
    is_received: bool,
    payload: String,
    tries: Vec<Try>,
}

struct Try {
    at: Moment,
    status: Option<u16>,
    elapsed: String,
    reason: String,
    is_received: bool,
    body: Option<String>,
}

impl Try {
    fn of(attempt: &CallbackAttempt, is_received: bool) -> Self {
        Self {
            at: attempt.at.into(),
            status: attempt.status,
            elapsed: format!("{} ms", count(attempt.elapsed_ms.into())),
            reason: attempt.reason.clone(),
            is_received,
            body: body_words(&attempt.body),
        }
    }
}

/// Finds a callback of the account with its tries; anybody else's is not found.
async fn find(
    dashboard: &Dashboard,
    member: &Member,
    id: &str,
) -> Result<(CallbackRecord, Vec<CallbackAttempt>), Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let id: CallbackId = id.parse().map_err(|_| missing())?;
    let reports = &dashboard.engine.reports;
    let found = reports.find(Some(member.account.id), id).await?;
    found.ok_or_else(missing)
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let (callback, tries) = find(&dashboard, &member, &id).await?;
    let frame = match query.get("said") {
        Some("replayed") => member
            .frame()
            .saying("It is sent again now. Reload in a moment to see what came of it."),
        Some("busy") => member
            .frame()
            .refusing("It is being tried at this very moment, so it was left alone. Reload to see what came of it."),
        _ => member.frame(),
    };
    let is_received = callback.state == CallbackState::Done;
    let last = tries.len().saturating_sub(1);
    let shown = tries.iter().enumerate().rev();
    let page = CallbackPage {
        frame,
        callback: Row::from(&callback),
        is_received,
        payload: callback.payload.clone(),
        tries: shown
            .map(|(place, attempt)| Try::of(attempt, is_received && place == last))
            .collect(),
    };
    Ok(show_page(StatusCode::OK, &page))
}
