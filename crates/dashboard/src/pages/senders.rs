//! The sender IDs of an account.

mod confirm;
mod register;
mod withdraw;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use domain::ports::ListRange;
use domain::sender::{Category, PIN_LIFETIME, SenderKind, SenderRecord, SenderState, Step};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;
use words::{Meaning, state_class};

const MAX_LIST: u32 = 1000;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/senders", get(list))
        .route(
            "/dashboard/senders/name",
            get(register::ask_name).post(register::register_name),
        )
        .route(
            "/dashboard/senders/number",
            get(register::ask_number).post(register::register_number),
        )
        .route("/dashboard/senders/{id}", get(show))
        .route("/dashboard/senders/{id}/confirm", post(confirm::confirm))
        .route("/dashboard/senders/{id}/pin", post(confirm::send_pin))
        .route("/dashboard/senders/{id}/withdraw", post(withdraw::withdraw))
}

#[derive(Template)]
#[template(path = "senders/list.html")]
struct SendersPage {
    frame: Frame,
    senders: Vec<SenderRow>,
    is_cut: bool,
    meanings: Vec<Meaning>,
}

/// A sender in the list and on its own page.
struct SenderRow {
    id: u64,
    name: String,
    kind: &'static str,
    state: &'static str,
    class: &'static str,
    awaits_pin: bool,
    may_withdraw: bool,
    next: &'static str,
    reason: Option<String>,
    category: Option<&'static str>,
    description: Option<String>,
    notification_url: Option<String>,
    created: Moment,
}

impl From<SenderRecord> for SenderRow {
    fn from(sender: SenderRecord) -> Self {
        let kind = sender.name.kind();
        let meaning = Meaning::new(sender.state);
        Self {
            id: sender.id.get(),
            name: sender.name.to_string(),
            kind: match kind {
                SenderKind::AlphaNumeric => "name",
                SenderKind::Msisdn => "number",
            },
            state: meaning.state,
            class: state_class(sender.state),
            awaits_pin: sender.state == SenderState::AwaitingConfirmation,
            may_withdraw: sender.state.after(Step::Reject).is_ok(),
            next: meaning.next,
            reason: sender.reason,
            category: sender.category.map(Category::name),
            description: sender.description,
            notification_url: sender.notification_url.map(|url| url.as_str().to_owned()),
            created: sender.created_at.into(),
        }
    }
}

async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
) -> Result<Response, Failure> {
    let all = ListRange {
        limit: MAX_LIST,
        offset: 0,
    };
    let senders = &dashboard.engine.senders;
    let senders = senders.list(member.account.id, all).await?;
    let page = SendersPage {
        frame: member.frame(),
        is_cut: senders.len() >= MAX_LIST as usize,
        senders: senders.into_iter().rev().map(SenderRow::from).collect(),
        meanings: SenderState::ALL.map(Meaning::new).into(),
    };
    Ok(show_page(StatusCode::OK, &page))
}

#[derive(Template)]
#[template(path = "senders/sender.html")]
struct SenderPage {
    frame: Frame,
    sender: SenderRow,
    pin_minutes: i64,
    typed: FormInput,
}

/// Finds a sender of the account. Those of other accounts are not found.
async fn find(dashboard: &Dashboard, member: &Member, id: &str) -> Result<SenderRecord, Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let id = id.parse().map_err(|_| missing())?;
    let senders = &dashboard.engine.senders;
    let found = senders.find(member.account.id, id).await?;
    found.ok_or_else(missing)
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let sender = find(&dashboard, &member, &id).await?;
    let frame = match member.said(&query) {
        Some("registered") => member.frame().with_success(words::registered(&sender)),
        Some("pin") => member.frame().with_success(words::pin_sent(&sender)),
        Some("confirmed") if sender.state == SenderState::Approved => member
            .frame()
            .with_success("Confirmed. You may send from this number."),
        Some("withdrawn") => member
            .frame()
            .with_success("The sender was withdrawn. You can register it again."),
        _ => member.frame(),
    };
    Ok(sender_page(frame, sender, FormInput::default()))
}

fn sender_page(frame: Frame, sender: SenderRecord, typed: FormInput) -> Response {
    let is_refused =
        typed.is_refused() || frame.flash.as_ref().is_some_and(|flash| flash.is_problem);
    let page = SenderPage {
        frame,
        sender: sender.into(),
        pin_minutes: PIN_LIFETIME.as_mins(),
        typed,
    };
    let status = if is_refused {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    show_page(status, &page)
}
