//! The pages of whoever runs the service. Every handler takes an [`Operator`](crate::kit::session::Operator).

mod account;
mod accounts;
mod carriers;
mod hosts;
mod message;
mod nodes;
mod prices;
mod queues;
mod reference;
mod routes;
mod senders;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use domain::ports::Counted;

use crate::Dashboard;
use crate::kit::form::Form;
use crate::kit::format::count;

/// Rows of a list that one page shows.
const PAGE: u32 = 50;

/// The routes of these pages.
pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(
            "/dashboard/operator/accounts",
            get(accounts::list).post(accounts::create),
        )
        .route("/dashboard/operator/accounts/{id}", get(account::show))
        .route(
            "/dashboard/operator/accounts/{id}/credit",
            post(account::credit),
        )
        .route(
            "/dashboard/operator/accounts/{id}/limits",
            post(account::set_limits),
        )
        .route(
            "/dashboard/operator/accounts/{id}/state",
            post(account::set_state),
        )
        .route(
            "/dashboard/operator/prices",
            get(prices::show).post(prices::import),
        )
        .route("/dashboard/operator/prices.csv", get(prices::export))
        .route("/dashboard/operator/carriers", get(carriers::show))
        .route("/dashboard/operator/carriers/live", get(carriers::follow))
        .route("/dashboard/operator/messages/{id}", get(message::show))
        .route("/dashboard/operator/hosts", get(hosts::show))
        .route("/dashboard/operator/hosts/replay", post(hosts::replay))
        .route("/dashboard/operator/nodes", get(nodes::show))
        .route("/dashboard/operator/queues", get(queues::show))
        .route("/dashboard/operator/reference", get(reference::show))
        .route("/dashboard/operator/routes", get(routes::show))
        .route("/dashboard/operator/senders", get(senders::list))
        .route("/dashboard/operator/senders/{id}", post(senders::decide))
}

/// A count that stops somewhere.
fn counted(number: Counted) -> String {
    let shown = count(number.0.into());
    if number.is_capped() {
        format!("{shown} or more")
    } else {
        shown
    }
}

/// A text as it stands behind the question mark of an address.
fn in_address(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A field of a form: what was typed, and what is wrong with it.
#[derive(Default)]
struct Field {
    text: String,
    problem: Option<String>,
}

impl Field {
    /// A field with this text.
    fn with(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: None,
        }
    }

    /// What was typed, without white space around it.
    fn typed(form: &Form, name: &str) -> Self {
        Self::with(form.get(name).unwrap_or_default().trim())
    }

    /// The same with the news that it will not do.
    fn refused(self, problem: &(impl ToString + ?Sized)) -> Self {
        Self {
            problem: Some(problem.to_string()),
            ..self
        }
    }
}
