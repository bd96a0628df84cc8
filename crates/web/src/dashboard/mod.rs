//! The dashboard: server-rendered pages behind a session, one file a page.
//!
//! A page turns a form into a call of a use case and its answer into HTML; it knows no rules. Who may see it stands in its
//! handler's signature (`visitor`). Every page works without a script, but for what is `live`. Every form carries a
//! token that only this browser's own page can have.

mod accounts;
mod assets;
mod audit;
mod browser;
mod callbacks;
mod chart;
mod connect;
mod consent;
mod form;
mod join;
mod live;
mod lookups;
mod messages;
mod nav;
mod numbers;
mod operator;
mod overview;
mod page;
mod password;
mod people;
mod permissions;
mod place;
mod qr;
mod query;
mod rates;
mod refused;
mod return_path;
mod scheduled;
mod second_step;
mod security;
mod send;
mod senders;
mod shown;
mod sign_in;
mod tokens;
mod typed;
mod visit;
mod visitor;

use std::sync::Arc;

use axum::Router;
use axum::response::Redirect;
use axum::routing::{get, post};
use domain::person::SignedIn;
use engine::Engine;
use ipnet::IpNet;
use tokio::sync::watch;

use crate::rest::correction::Corrections;
use crate::rest::wrong_method;
pub use assets::router as assets_router;
use live::Streams;
use page::Failure;
pub(crate) use refused::refused;
use return_path::ReturnPath;
use visit::Visit;
pub(crate) use visit::session_of;

/// How the dashboard is reached.
#[derive(Debug, Clone)]
pub struct DashboardSettings {
    /// Whether it is served over HTTPS, so that its cookies may insist on it.
    pub secure: bool,
    /// The address of the dashboard itself, for links that are given to people.
    pub dashboard_url: String,
    /// The address of the REST API, for the examples.
    pub base_url: String,
    /// The address of the MCP server, `/mcp` included, for the examples.
    pub mcp_url: String,
    /// The address of the authorization server.
    pub auth_url: String,
    /// The header of the REST API that carries a token.
    pub token_header: String,
    /// The currency of every amount.
    pub currency: String,
    /// The proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<IpNet>,
}

/// The pages.
pub struct Dashboard {
    engine: Arc<Engine>,
    settings: DashboardSettings,
    corrections: Corrections,
    streams: Streams,
}

impl Dashboard {
    /// The pages on these use cases. What they send by and by ends when `stop` turns true.
    pub fn new(
        engine: Arc<Engine>,
        settings: DashboardSettings,
        stop: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            settings,
            corrections: Corrections::default(),
            streams: Streams::new(stop),
        })
    }

    /// The routes, without those of [`assets_router`].
    pub fn router(self: &Arc<Self>) -> Router {
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
                get(second_step::ask).post(second_step::enter),
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
            .merge(numbers::routes())
            .merge(rates::routes())
            .merge(lookups::routes())
            .merge(tokens::routes())
            .merge(scheduled::routes())
            .merge(callbacks::routes())
            .merge(messages::routes())
            .merge(overview::routes())
            .merge(send::routes())
            .merge(security::routes())
            .merge(people::routes())
            .merge(accounts::routes())
            .merge(audit::routes())
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }

    /// The session that a browser brought along, and whose it is; otherwise the way to the sign-in page, and back.
    async fn signed_in<'a>(
        &self,
        visit: &'a Visit,
        back: &ReturnPath,
    ) -> Result<(&'a str, SignedIn), Failure> {
        if let Some(session) = &visit.session
            && let Some(signed_in) = self.engine.sign_in.find(session, visit.address).await?
        {
            return Ok((session, signed_in));
        }
        Err(Failure::Elsewhere(Redirect::to(&back.sign_in_address())))
    }
}
