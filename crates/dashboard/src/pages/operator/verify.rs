//! How many one-time codes of each account are entered.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Operator;
use crate::pages::verify::conversion::Conversions;

/// How many prefixes and networks are shown.
const MOST_ROWS: u32 = 500;

#[derive(Template)]
#[template(path = "operator/verify.html")]
struct VerifyPage {
    frame: Frame,
    conversions: Conversions,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
) -> Result<Response, Failure> {
    let page = VerifyPage {
        frame: operator.frame(),
        conversions: dashboard.conversions(None, MOST_ROWS).await?,
    };
    Ok(show_page(StatusCode::OK, &page))
}
