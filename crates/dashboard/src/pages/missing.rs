//! Addresses that do not exist.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::any;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, notice_with};
use crate::kit::session::Session;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new().route("/dashboard/{*rest}", any(missing))
}

async fn missing(session: Result<Session, Failure>) -> Response {
    let frame = session.map_or_else(|_| Frame::plain(), |session| session.frame());
    notice_with(
        frame,
        StatusCode::NOT_FOUND,
        "Page not found",
        "There is no page at this address. Check it for a typing mistake, or start at the overview.",
        Some(("/dashboard", "Overview")),
    )
}
