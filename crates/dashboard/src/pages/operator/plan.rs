//! Changing carriers and routes: forms, test messages and history.

mod carrier;
mod examples;
mod history;
mod route;
mod test;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use engine::catalogue::plans::{PlanError, PlanProblem};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::sentence;
use crate::kit::page::{Frame, notice_with};
use crate::kit::session::Operator;

const CARRIERS: &str = "/dashboard/operator/carriers";
const ROUTES: &str = "/dashboard/operator/routes";
const HISTORY: &str = "/dashboard/operator/carriers/history";

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(
            "/dashboard/operator/carriers/new",
            get(examples::show).post(carrier::create),
        )
        .route(
            "/dashboard/operator/carriers/edit",
            get(carrier::show).post(carrier::change),
        )
        .route("/dashboard/operator/carriers/remove", post(carrier::remove))
        .route(
            "/dashboard/operator/carriers/test",
            get(test::show).post(test::send),
        )
        .route("/dashboard/operator/carriers/test/live", get(test::follow))
        .route(HISTORY, get(history::show))
        .route("/dashboard/operator/carriers/undo", post(history::undo))
        .route(
            "/dashboard/operator/routes/edit",
            get(route::show).post(route::store),
        )
        .route("/dashboard/operator/routes/remove", post(route::remove))
}

/// A notice about what was done, on the pages that forms of this kind lead to.
pub(super) fn with_notice(frame: Frame, said: Option<&str>) -> Frame {
    let text = match said {
        Some("stored") => "Stored. All nodes use it within a second.",
        Some("removed") => "Removed. You can restore it from the history.",
        Some("undone") => "Restored. All nodes use it within a second.",
        _ => return frame,
    };
    frame.with_success(text)
}

/// A problem of a form, with the line of the description that it is in.
struct ProblemLine {
    line: Option<usize>,
    text: String,
}

impl From<PlanProblem> for ProblemLine {
    fn from(problem: PlanProblem) -> Self {
        Self {
            line: problem.line,
            text: problem.text,
        }
    }
}

/// The problems of what was typed; other failures have pages of their own.
fn problems(error: PlanError) -> Result<Vec<ProblemLine>, Failure> {
    match error {
        PlanError::Wrong(problems) => Ok(problems.into_iter().map(ProblemLine::from).collect()),
        PlanError::Store(error) => Err(error.into()),
    }
}

/// The page that says why carriers and routes cannot be read or changed.
pub(super) fn failed(operator: &Operator, error: PlanError) -> Failure {
    let lines = match problems(error) {
        Ok(lines) => lines,
        Err(failure) => return failure,
    };
    let texts: Vec<String> = lines.iter().map(|line| sentence(&line.text)).collect();
    let page = notice_with(
        operator.frame(),
        StatusCode::UNPROCESSABLE_ENTITY,
        "This does not work",
        &texts.join(" "),
        Some((CARRIERS, "Carriers")),
    );
    Failure::Page(Box::new(page))
}
