//! The pages, one file for each.

mod accounts;
mod audit;
pub(crate) mod bulk;
mod callbacks;
mod connect;
mod consent;
mod inbox;
mod join;
mod lookups;
mod messages;
mod missing;
mod notifications;
mod numbers;
pub(crate) mod oauth_refused;
mod operator;
mod opt_outs;
mod overview;
mod password;
mod people;
mod rates;
mod scheduled;
mod search;
mod second_factor;
mod security;
mod send;
mod senders;
mod sign_in;
mod statement;
mod templates;
mod tokens;
mod verify;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::Dashboard;

pub(crate) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(
            "/dashboard/password",
            get(password::ask_operator).post(password::create_operator),
        )
        .route(
            "/dashboard/invitation/{link}",
            get(password::ask_invited).post(password::accept),
        )
        .route(
            "/dashboard/sign-in",
            get(sign_in::ask).post(sign_in::sign_in),
        )
        .route(
            "/dashboard/sign-in/code",
            get(second_factor::ask).post(second_factor::enter),
        )
        .route(
            "/dashboard/sign-in/{link}",
            get(sign_in::ask_by_link).post(sign_in::sign_in_by_link),
        )
        .route("/dashboard/sign-out", post(sign_in::sign_out))
        .route(
            "/oauth/consent/{id}",
            get(consent::ask).post(consent::decide),
        )
        .merge(operator::routes())
        .merge(connect::routes())
        .merge(senders::routes())
        .merge(opt_outs::routes())
        .merge(numbers::routes())
        .merge(rates::routes())
        .merge(lookups::routes())
        .merge(verify::routes())
        .merge(tokens::routes())
        .merge(scheduled::routes())
        .merge(callbacks::routes())
        .merge(messages::routes())
        .merge(inbox::routes())
        .merge(statement::routes())
        .merge(overview::routes())
        .merge(send::routes())
        .merge(bulk::routes())
        .merge(templates::routes())
        .merge(security::routes())
        .merge(people::routes())
        .merge(accounts::routes())
        .merge(audit::routes())
        .merge(notifications::routes())
        .merge(search::routes())
        .merge(missing::routes())
}
