//! The audit log: all of it for operators, that of an account for its admins.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::AccountId;
use domain::ids::AuditId;
use domain::ports::{AuditEntry, AuditFilter, Cursor, Page};
use engine::audit::{Action, REFUSED};
use engine::identity::accounts::AccountError;
use http::StatusCode;

use super::people::Names;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, TimedText};
use crate::kit::page::{Frame, show};
use crate::kit::query::Query;
use crate::kit::session::{Admin, Operator};

const ROWS: u32 = 50;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/operator/audit", get(show_all))
        .route("/dashboard/settings/audit", get(show_own))
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    title: &'static str,
    lead: &'static str,
    path: &'static str,
    is_for_all: bool,
    account: String,
    who: String,
    actions: Vec<ActionOption>,
    problem: Option<String>,
    rows: Vec<AuditRow>,
    is_filtered: bool,
    older: Option<String>,
}

/// An action to filter by.
struct ActionOption {
    name: &'static str,
    is_chosen: bool,
}

struct AuditRow {
    at: Moment,
    who: String,
    address: String,
    account: String,
    action: String,
    is_refused: bool,
    subject: String,
    detail: TimedText,
}

impl AuditRow {
    fn new(entry: AuditEntry, names: &Names) -> Self {
        let change = entry.change;
        let account = change.account.and_then(|account| names.get(&account));
        Self {
            at: change.at.into(),
            who: change.who,
            address: change.address.map(|it| it.to_string()).unwrap_or_default(),
            account: account.cloned().unwrap_or_default(),
            is_refused: change.action.ends_with(REFUSED),
            action: change.action,
            subject: change.subject,
            detail: TimedText::new(&change.detail),
        }
    }
}

async fn show_all(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let mut problem = None;
    let account = match query.get("account") {
        None => None,
        Some(name) => match dashboard.engine.accounts.get(name).await {
            Ok(account) => Some(account.id),
            Err(AccountError::Store(error)) => return Err(error.into()),
            Err(_) => {
                problem = Some("There is no account with this name.".to_owned());
                None
            }
        },
    };
    let view = View {
        title: "Full audit log",
        lead: "Who changed what, and from where. Entries cannot be changed or removed.",
        path: "/dashboard/operator/audit",
        is_for_all: true,
        account,
        problem,
    };
    page(&dashboard, operator.frame(), &query, view).await
}

async fn show_own(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    query: Query,
) -> Result<Response, Failure> {
    let view = View {
        title: "Audit log",
        lead: "Who changed something in this account, and from where. Entries cannot be changed or removed.",
        path: "/dashboard/settings/audit",
        is_for_all: false,
        account: Some(admin.account.id),
        problem: None,
    };
    page(&dashboard, admin.frame(), &query, view).await
}

/// The differences between the two pages.
struct View {
    title: &'static str,
    lead: &'static str,
    path: &'static str,
    is_for_all: bool,
    account: Option<AccountId>,
    problem: Option<String>,
}

async fn page(
    dashboard: &Dashboard,
    frame: Frame,
    query: &Query,
    view: View,
) -> Result<Response, Failure> {
    let filter = AuditFilter {
        account: view.account,
        who: query.get("who").map(str::to_lowercase),
        action: query.get("action").map(str::to_owned),
    };
    let before = query.get("before").and_then(|id| id.parse().ok());
    let cursor = Cursor {
        before,
        limit: ROWS,
    };
    let found = match &view.problem {
        None => dashboard.engine.audit.search(&filter, cursor).await?,
        Some(_) => Page {
            rows: Vec::new(),
            next: None,
        },
    };
    let names = if view.is_for_all {
        let accounts = found.rows.iter().filter_map(|entry| entry.change.account);
        dashboard.account_names(accounts.collect()).await?
    } else {
        Names::new()
    };
    let older = |id: AuditId| query.address_with("before", Some(&id.to_string()));
    let status = match view.problem {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let page = AuditPage {
        frame,
        title: view.title,
        lead: view.lead,
        path: view.path,
        is_for_all: view.is_for_all,
        account: query.text("account").to_owned(),
        who: query.text("who").to_owned(),
        actions: choices(query.text("action")),
        problem: view.problem,
        is_filtered: ["account", "who", "action", "before"]
            .iter()
            .any(|name| query.get(name).is_some()),
        older: found.next.map(older),
        rows: found
            .rows
            .into_iter()
            .map(|entry| AuditRow::new(entry, &names))
            .collect(),
    };
    Ok(show(status, &page))
}

fn choices(chosen: &str) -> Vec<ActionOption> {
    let choice = |action: Action| ActionOption {
        name: action.name(),
        is_chosen: action.name() == chosen,
    };
    Action::ALL.into_iter().map(choice).collect()
}
