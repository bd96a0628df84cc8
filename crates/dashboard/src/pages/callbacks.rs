//! Callbacks: their receivers, their attempts, and sending them again.

mod filter;
mod replay;
mod test_report;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use domain::CallbackId;
use domain::delivery::{CallbackAttempt, CallbackKind};
use domain::ports::{CallbackRecord, CallbackState, CallbackSubject, Cursor, Receiver};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{HIDDEN, Moment, capped_count, count};
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;
use filter::Filters;
use test_report::TestForm;
use words::{body_words, kind_words, state_word};

const PAGE_SIZE: u32 = 50;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/callbacks", get(list))
        .route(
            "/dashboard/callbacks/replay",
            get(replay::ask).post(replay::replay),
        )
        .route("/dashboard/callbacks/test", post(test_report::send))
        .route("/dashboard/callbacks/{id}", get(show))
        .route("/dashboard/callbacks/{id}/live", get(follow))
        .route("/dashboard/callbacks/{id}/replay", post(replay::replay_one))
}

#[derive(Template)]
#[template(path = "callbacks/list.html")]
struct CallbacksPage {
    frame: Frame,
    filters: Filters,
    states: [(&'static str, &'static str); 5],
    receivers: Vec<ReceiverRow>,
    rows: Vec<CallbackRow>,
    older: Option<String>,
    is_first: bool,
    replay: Option<String>,
    test: TestForm,
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
        // The slash excludes hosts that only start with this name.
        let start = format!("{}/", receiver.address);
        let address = |path| filter::address(path, &[("url", &start)]);
        Self {
            show: address("/dashboard/callbacks"),
            replay: address("/dashboard/callbacks/replay"),
            host: receiver.host,
            waiting: capped_count(receiver.waiting),
            parked: capped_count(receiver.parked),
            oldest: receiver.oldest_at.map(Moment::from),
            reason: receiver.last_reason,
        }
    }
}

/// A callback in the list and on its own page.
struct CallbackRow {
    id: u64,
    kind: &'static str,
    /// The message, lookup or sender it is about: label and address.
    about: (String, String),
    url: String,
    state: &'static str,
    due: Option<Moment>,
    tries: String,
    reason: Option<String>,
    created: Moment,
}

impl From<&CallbackRecord> for CallbackRow {
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

fn about(callback: &CallbackRecord) -> (String, String) {
    let (label, page, id) = match (callback.about, callback.kind) {
        (CallbackSubject::Inbound(id), _) => ("inbound message", "inbox", id.get()),
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
    page(&dashboard, &member, &query, TestForm::default()).await
}

async fn page(
    dashboard: &Dashboard,
    member: &Member,
    query: &Query,
    test: TestForm,
) -> Result<Response, Failure> {
    let account = member.account.id;
    let filters = Filters::read(query);
    let before: Option<CallbackId> = query.get("before").and_then(|id| id.parse().ok());
    let receivers = dashboard
        .engine
        .operations
        .list_receivers(Some(account))
        .await?;
    let reports = &dashboard.engine.reports;
    let cursor = Cursor {
        before,
        limit: PAGE_SIZE,
    };
    let found = reports
        .search(&filters.for_account(account), cursor)
        .await?;
    let rows = found.rows.iter().filter(|row| filters.matches(row.state));
    let status = if filters.problem.is_some() || test.problem.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let older = found.next.map(|next| next.to_string());
    let page = CallbacksPage {
        frame: member.frame(),
        receivers: receivers.into_iter().map(ReceiverRow::from).collect(),
        rows: rows.map(CallbackRow::from).collect(),
        older: older.map(|id| query.address_with("before", Some(&id))),
        is_first: before.is_none(),
        replay: filters.replay_address(),
        states: filter::STATES,
        filters,
        test,
    };
    Ok(show_page(status, &page))
}

#[derive(Template)]
#[template(path = "callbacks/callback.html")]
struct CallbackPage {
    frame: Frame,
    detail: CallbackDetail,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "callbacks/detail.html")]
struct DetailPart {
    detail: CallbackDetail,
}

struct CallbackDetail {
    callback: CallbackRow,
    is_received: bool,
    payload: String,
    tries: Vec<AttemptRow>,
}

impl CallbackDetail {
    fn new(callback: &CallbackRecord, tries: &[CallbackAttempt], sees_texts: bool) -> Self {
        let is_received = callback.state == CallbackState::Done;
        let last = tries.len().saturating_sub(1);
        let shown = tries.iter().enumerate().rev();
        Self {
            callback: CallbackRow::from(callback),
            is_received,
            payload: if sees_texts || callback.kind != CallbackKind::Inbound {
                callback.payload.clone()
            } else {
                HIDDEN.to_owned()
            },
            tries: shown
                .map(|(place, attempt)| AttemptRow::new(attempt, is_received && place == last))
                .collect(),
        }
    }
}

struct AttemptRow {
    at: Moment,
    status: Option<u16>,
    elapsed: String,
    reason: String,
    is_received: bool,
    body: Option<String>,
}

impl AttemptRow {
    fn new(attempt: &CallbackAttempt, is_received: bool) -> Self {
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

/// Finds a callback of the account with its attempts. Those of other accounts are not found.
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
    let frame = match member.said(&query) {
        Some("replayed") => member
            .frame()
            .with_success("It is being sent again. The attempts are below."),
        Some("busy") => member
            .frame()
            .with_problem("It is being sent right now, so nothing was changed."),
        _ => member.frame(),
    };
    let page = CallbackPage {
        frame,
        detail: CallbackDetail::new(&callback, &tries, member.sees_texts()),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Live updates: a callback that was received may be sent again at any time.
async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
) -> Result<Response, Failure> {
    let (callback, _) = find(&dashboard, &member, &id).await?;
    let (account, id) = (member.account.id, callback.id);
    let (own, sees_texts) = (dashboard.clone(), member.sees_texts());
    Ok(live::stream(&dashboard, &member, move || {
        let dashboard = own.clone();
        async move {
            let found = dashboard.engine.reports.find(Some(account), id).await?;
            let (callback, tries) = found.ok_or(Failure::Form)?;
            let detail = CallbackDetail::new(&callback, &tries, sees_texts);
            Ok(Fragment::render(&DetailPart { detail }))
        }
    })
    .await)
}
