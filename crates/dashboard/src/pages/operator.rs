//! Pages for operators. Every handler takes an [`Operator`](crate::kit::session::Operator).

mod account;
mod accounts;
mod blocks;
mod carriers;
mod handset;
mod hosts;
mod margin;
mod message;
mod nodes;
mod numbers;
mod plan;
mod prices;
mod queues;
mod reference;
mod routes;
mod senders;
mod smpp_users;
mod traffic;
mod unclaimed;
mod verify;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::Dashboard;
use crate::kit::form::Form;
use crate::pages::tokens::create;

pub(super) use account::find as find_account;

const PAGE_SIZE: u32 = 50;

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
            "/dashboard/operator/accounts/{id}/token",
            get(create::ask_for_account).post(create::create_for_account),
        )
        .route(
            "/dashboard/operator/prices",
            get(prices::show).post(prices::import),
        )
        .route("/dashboard/operator/prices.csv", get(prices::export))
        .route(
            "/dashboard/operator/blocks",
            get(blocks::show).post(blocks::add),
        )
        .route("/dashboard/operator/blocks/remove", post(blocks::remove))
        .route(
            "/dashboard/operator/numbers",
            get(numbers::show).post(numbers::add),
        )
        .route("/dashboard/operator/numbers/remove", post(numbers::remove))
        .route(
            "/dashboard/operator/smpp-users",
            get(smpp_users::show).post(smpp_users::create),
        )
        .route(
            "/dashboard/operator/smpp-users/revoke",
            post(smpp_users::revoke),
        )
        .route(
            "/dashboard/operator/smpp-users/{id}",
            get(smpp_users::user::show).post(smpp_users::user::change),
        )
        .route(
            "/dashboard/operator/smpp-users/{id}/live",
            get(smpp_users::user::follow),
        )
        .route("/dashboard/operator/unclaimed", get(unclaimed::list))
        .route("/dashboard/operator/unclaimed/{id}", get(unclaimed::show))
        .route("/dashboard/operator/carriers", get(carriers::show))
        .route(
            "/dashboard/operator/carriers/handset",
            get(handset::show).post(handset::send),
        )
        .route("/dashboard/operator/carriers/live", get(carriers::follow))
        .route("/dashboard/operator/messages/{id}", get(message::show))
        .route("/dashboard/operator/hosts", get(hosts::show))
        .route("/dashboard/operator/hosts/replay", post(hosts::replay))
        .route("/dashboard/operator/margin", get(margin::show))
        .route("/dashboard/operator/nodes", get(nodes::show))
        .route("/dashboard/operator/queues", get(queues::show))
        .route("/dashboard/operator/reference", get(reference::show))
        .route("/dashboard/operator/routes", get(routes::show))
        .route("/dashboard/operator/traffic", get(traffic::show))
        .route("/dashboard/operator/senders", get(senders::list))
        .route("/dashboard/operator/senders/{id}", post(senders::decide))
        .merge(plan::routes())
        .route("/dashboard/operator/verify", get(verify::show))
}

/// Escapes a text for a query string.
pub(super) fn in_address(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The value of a field and its problem.
#[derive(Default)]
struct Field {
    text: String,
    problem: Option<String>,
}

impl Field {
    fn with(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: None,
        }
    }

    fn typed(form: &Form, name: &str) -> Self {
        Self::with(form.get(name).unwrap_or_default().trim())
    }

    fn refused(self, problem: &(impl ToString + ?Sized)) -> Self {
        Self {
            problem: Some(problem.to_string()),
            ..self
        }
    }
}
