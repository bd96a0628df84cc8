//! Examples for connecting programs and AI clients, with the addresses of this server.
//!
//! They never contain a token; programs read it from the environment.

mod examples;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::person::Role;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Member;
use examples::{Example, ServerAddresses};

#[derive(Template)]
#[template(path = "connect.html")]
struct ConnectPage<'a> {
    frame: Frame,
    makes_tokens: bool,
    base_url: &'a str,
    mcp_url: &'a str,
    auth_url: &'a str,
    token_header: &'a str,
    in_shell: &'static str,
    programs: Vec<Example>,
    by_token: Vec<Example>,
    by_consent: Vec<Example>,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new().route("/dashboard/connect", get(show))
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
) -> Result<Response, Failure> {
    let settings = &dashboard.settings;
    let addresses = ServerAddresses {
        base: &settings.base_url,
        mcp: &settings.mcp_url,
        header: &settings.token_header,
    };
    let page = ConnectPage {
        frame: member.frame(),
        makes_tokens: member.signed_in.role() != Role::Member,
        base_url: &settings.base_url,
        mcp_url: &settings.mcp_url,
        auth_url: &settings.auth_url,
        token_header: &settings.token_header,
        in_shell: examples::IN_SHELL,
        programs: examples::programs(&addresses),
        by_token: examples::by_token(&addresses),
        by_consent: examples::by_consent(&addresses),
    };
    Ok(show_page(StatusCode::OK, &page))
}
