//! The refused requests of a token.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::Code;
use domain::ports::RefusedRequest;
use engine::identity::request_log::KEPT;
use http::StatusCode;

use super::find;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Admin;

#[derive(Template)]
#[template(path = "tokens/requests.html")]
struct RequestsPage {
    frame: Frame,
    token: String,
    rows: Vec<RequestRow>,
    kept: u32,
}

struct RequestRow {
    at: Moment,
    method: String,
    route: String,
    status: String,
    /// Number and words.
    error: Option<String>,
    message: String,
}

impl RequestRow {
    fn new(request: RefusedRequest) -> Self {
        let reason = StatusCode::from_u16(request.status).ok();
        let reason = reason.and_then(|status| status.canonical_reason());
        let error = |number: u16| match Code::new(number) {
            Some(code) => format!("{number} {}", code.entry().words),
            None => number.to_string(),
        };
        Self {
            at: request.at.into(),
            status: match reason {
                Some(reason) => format!("{} {reason}", request.status),
                None => request.status.to_string(),
            },
            error: request.error.map(error),
            method: request.method,
            route: request.route,
            message: request.message,
        }
    }
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
) -> Result<Response, Failure> {
    let token = find(&dashboard, &admin, &id).await?;
    let name = token.access.name;
    let log = &dashboard.engine.request_log;
    let requests = log.list(admin.account.id, &name).await?;
    let page = RequestsPage {
        frame: admin.frame(),
        rows: requests.into_iter().map(RequestRow::new).collect(),
        token: name,
        kept: KEPT,
    };
    Ok(show_page(StatusCode::OK, &page))
}
