//! The changes of the carriers and routes in the database.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use engine::catalogue::plans::PlanVersion;
use http::StatusCode;

use super::{HISTORY, failed, with_notice};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

#[derive(Template)]
#[template(path = "operator/plan/history.html")]
struct HistoryPage {
    frame: Frame,
    rows: Vec<VersionRow>,
    /// The version before the last one.
    previous: u32,
}

struct VersionRow {
    version: PlanVersion,
    at: Moment,
    is_newest: bool,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let history = dashboard.plans.history().await;
    let history = history.map_err(|error| failed(&operator, error))?;
    let newest = history.first().map_or(0, |newest| newest.version);
    let row = |version: PlanVersion| VersionRow {
        at: version.at.into(),
        is_newest: version.version == newest,
        version,
    };
    let page = HistoryPage {
        frame: with_notice(operator.frame(), operator.said(&query)),
        rows: history.into_iter().map(row).collect(),
        previous: newest.saturating_sub(1),
    };
    Ok(show_page(StatusCode::OK, &page))
}

pub(super) async fn undo(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let to = form.get("to").and_then(|to| to.parse::<u32>().ok());
    let to = to.ok_or(Failure::Form)?;
    let title = match to {
        0 => "Restore the state before the first change?".to_owned(),
        to => format!("Restore version {to}?"),
    };
    let question = Question {
        title: &title,
        text: "All carriers and routes in the database become those of that version, with their secrets. This can be undone, too.",
        button: "Restore",
        back: HISTORY,
        is_dangerous: true,
    };
    operator
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let undone = dashboard.plans.undo(&operator.by(), to).await;
    undone.map_err(|error| failed(&operator, error))?;
    Ok(operator.redirect_saying(HISTORY, "undone"))
}
