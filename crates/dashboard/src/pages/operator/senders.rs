//! Sender review: pending senders, and all others by state.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::note::Note;
use domain::ports::{ListRange, SenderFilter};
use domain::sender::{Category, SenderRecord, SenderState, Step};
use domain::{AccountId, SenderId};
use engine::senders::ReviewError;
use http::StatusCode;

use super::{Field, PAGE_SIZE};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

const HERE: &str = "/dashboard/operator/senders";

#[derive(Template)]
#[template(path = "operator/senders.html")]
struct SendersPage {
    frame: Frame,
    tabs: Vec<Tab>,
    state: &'static str,
    is_queue: bool,
    rows: Vec<SenderRow>,
    next: Option<String>,
}

struct Tab {
    state: &'static str,
    label: String,
    is_here: bool,
}

struct SenderRow {
    id: u64,
    account: u64,
    account_name: String,
    name: String,
    kind: &'static str,
    category: Option<&'static str>,
    description: String,
    is_notified: bool,
    created: Moment,
    reason_given: String,
    may_approve: bool,
    may_reject: bool,
    may_revoke: bool,
    reason: Field,
}

pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let mut frame = operator.frame();
    if let Some(words) = operator.said(&query).and_then(done_message) {
        frame = frame.with_success(words);
    }
    let state = query.get("state").and_then(|state| state.parse().ok());
    let after = query.get("after").and_then(|id| id.parse().ok());
    let view = View {
        state: state.unwrap_or(SenderState::Pending),
        after: after.and_then(SenderId::new),
    };
    let page = build(&dashboard, frame, view, None).await?;
    Ok(show(StatusCode::OK, &page))
}

/// Approves, rejects or revokes a sender.
pub(super) async fn decide(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let not_found = || Failure::NotFound(Box::new(operator.frame()));
    let id = id.parse().ok().and_then(SenderId::new);
    let id = id.ok_or_else(not_found)?;
    let (step, done) = match form.get("decision") {
        Some("approve") => (Step::Approve, "approved"),
        Some("reject") => (Step::Reject, "rejected"),
        Some("revoke") => (Step::Revoke, "revoked"),
        _ => return Err(Failure::Form),
    };
    let view = View {
        state: form
            .get("view")
            .and_then(|state| state.parse().ok())
            .unwrap_or(SenderState::Pending),
        after: None,
    };
    let reason = Field::typed(&form, "reason");
    if reason.text.is_empty() && step != Step::Approve {
        let reason =
            reason.refused("Give a reason: the account sees it and can correct the problem.");
        return refuse(
            &dashboard,
            &operator,
            view,
            id,
            reason,
            "Nothing was decided.",
        )
        .await;
    }
    if let Err(problem) = reason.text.parse::<Note>() {
        let reason = reason.refused(&problem);
        return refuse(
            &dashboard,
            &operator,
            view,
            id,
            reason,
            "Nothing was decided.",
        )
        .await;
    }
    if step == Step::Revoke {
        ask_to_revoke(&dashboard, &operator, &form, view, id).await?;
    }
    let words = Some(reason.text.as_str()).filter(|words| !words.is_empty());
    let review = &dashboard.engine.sender_review;
    match review.decide(&operator.by(), id, step, words).await {
        Ok(_) => {
            let address = format!("{HERE}?state={}", view.state.name());
            Ok(operator.redirect_saying(&address, done))
        }
        Err(ReviewError::Unknown(_)) => Err(not_found()),
        Err(ReviewError::Store(error)) => Err(error.into()),
        Err(problem @ ReviewError::WrongState(..)) => {
            let why = format!("Someone else has already decided: {problem}.");
            refuse(&dashboard, &operator, view, id, reason, &why).await
        }
    }
}

async fn ask_to_revoke(
    dashboard: &Dashboard,
    operator: &Operator,
    form: &Form,
    view: View,
    id: SenderId,
) -> Result<(), Failure> {
    let filter = SenderFilter {
        account: None,
        state: None,
        after: SenderId::new(id.get().saturating_sub(1)),
    };
    let first = ListRange {
        limit: 1,
        offset: 0,
    };
    let found = dashboard.engine.sender_review.list(filter, first).await?;
    let Some(sender) = found.first().filter(|sender| sender.id == id) else {
        return Err(Failure::NotFound(Box::new(operator.frame())));
    };
    operator.ask(
        form,
        &Question {
            title: &format!("Revoke the sender {}?", sender.name),
            text: "Its account can no longer send from it, on every node within a second.",
            button: "Revoke",
            back: &format!("{HERE}?state={}", view.state.name()),
            is_dangerous: true,
        },
    )
}

fn done_message(done: &str) -> Option<&'static str> {
    match done {
        "approved" => Some("Approved. The account can send from it on every node within a second."),
        "rejected" => {
            Some("Rejected. The account is notified of the reason, if it asked for notifications.")
        }
        "revoked" => Some("Revoked. It can no longer be used."),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct View {
    state: SenderState,
    after: Option<SenderId>,
}

async fn refuse(
    dashboard: &Dashboard,
    operator: &Operator,
    view: View,
    id: SenderId,
    reason: Field,
    why: &str,
) -> Result<Response, Failure> {
    // The page starts with the sender of the decision.
    let after = SenderId::new(id.get().saturating_sub(1));
    let frame = operator.frame().with_problem(why);
    let page = build(dashboard, frame, View { after, ..view }, Some((id, reason))).await?;
    Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn build(
    dashboard: &Dashboard,
    frame: Frame,
    view: View,
    typed: Option<(SenderId, Field)>,
) -> Result<SendersPage, Failure> {
    let filter = SenderFilter {
        account: None,
        state: Some(view.state),
        after: view.after,
    };
    let range = ListRange {
        limit: PAGE_SIZE,
        offset: 0,
    };
    let senders = dashboard.engine.sender_review.list(filter, range).await?;
    let accounts = senders.iter().map(|sender| sender.account);
    let names = dashboard.engine.accounts.names(accounts).await?;
    let state = view.state.name();
    let last = senders
        .last()
        .filter(|_| senders.len() >= PAGE_SIZE as usize);
    let next = last.map(|last| format!("{HERE}?state={state}&after={}", last.id));
    let mut rows: Vec<SenderRow> = senders
        .into_iter()
        .map(|one| SenderRow::new(one, &names))
        .collect();
    if let Some((id, reason)) = typed
        && let Some(row) = rows.iter_mut().find(|row| row.id == id.get())
    {
        row.reason = reason;
    }
    Ok(SendersPage {
        frame,
        tabs: SenderState::ALL.map(|tab| Tab::new(tab, view.state)).into(),
        state,
        is_queue: view.state == SenderState::Pending,
        rows,
        next,
    })
}

impl Tab {
    fn new(state: SenderState, here: SenderState) -> Self {
        Self {
            state: state.name(),
            label: state.name().replace('_', " "),
            is_here: state == here,
        }
    }
}

impl SenderRow {
    fn new(sender: SenderRecord, names: &HashMap<AccountId, String>) -> Self {
        let may = |step| sender.state.after(step).is_ok();
        Self {
            id: sender.id.get(),
            account: sender.account.get(),
            account_name: names.get(&sender.account).cloned().unwrap_or_default(),
            name: sender.name.to_string(),
            kind: sender.name.kind().name(),
            category: sender.category.map(Category::name),
            is_notified: sender.notification_url.is_some(),
            created: sender.created_at.into(),
            may_approve: may(Step::Approve),
            may_reject: may(Step::Reject),
            may_revoke: may(Step::Revoke),
            description: sender.description.unwrap_or_default(),
            reason_given: sender.reason.unwrap_or_default(),
            reason: Field::default(),
        }
    }
}
