//! Settings, API: tokens, connected AI clients, and the secret that signs callbacks.
//!
//! The secret of a token is only in the response to the form that created it.

mod clients;
pub(super) mod create;
mod edit;
mod refused;
mod rotate;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use domain::billing::TextRoles;
use domain::ports::TokenRecord;
use domain::{Role, Timestamp, TokenId};
use engine::identity::accounts::{AccountError, SECRET_OVERLAP};
use http::StatusCode;
use ipnet::IpNet;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Admin, Posted};
use clients::ClientRow;

const HERE: &str = "/dashboard/settings/api";
const ROTATE: &str = "/dashboard/settings/api/secret/rotate";
/// Example for receivers: verifying a signature.
const VERIFY: &str = r#"import base64, hashlib, hmac, os, time

def is_genuine(headers, body: bytes) -> bool:
    key = base64.b64decode(os.environ["CALLBACK_SECRET"].removeprefix("whsec_"))
    name, sent = headers["webhook-id"], headers["webhook-timestamp"]
    digest = hmac.new(key, f"{name}.{sent}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    is_fresh = abs(time.time() - int(sent)) < 300
    signatures = headers["webhook-signature"].split(" ")
    return is_fresh and any(hmac.compare_digest(expected, one) for one in signatures)"#;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show))
        .route(
            "/dashboard/settings/api/new",
            get(create::ask).post(create::create),
        )
        .route(
            "/dashboard/settings/api/tokens/{id}",
            get(ask_delete).post(delete),
        )
        .route(
            "/dashboard/settings/api/tokens/{id}/edit",
            get(edit::ask).post(edit::change),
        )
        .route(
            "/dashboard/settings/api/tokens/{id}/rotate",
            get(rotate::ask).post(rotate::rotate),
        )
        .route(
            "/dashboard/settings/api/tokens/{id}/requests",
            get(refused::show),
        )
        .route(
            "/dashboard/settings/api/clients/{id}",
            get(clients::ask).post(clients::disconnect),
        )
        .route(
            "/dashboard/settings/api/consent",
            post(clients::set_consent),
        )
        .route("/dashboard/settings/api/texts", post(clients::set_texts))
        .route("/dashboard/settings/api/secret", post(show_secret))
        .route(ROTATE, get(ask_rotate).post(rotate_secret))
}

#[derive(Template)]
#[template(path = "tokens/list.html")]
struct TokensPage {
    frame: Frame,
    tokens: Vec<TokenRow>,
    clients: Vec<ClientRow>,
    currency: String,
    admins_consent_only: bool,
    /// Name, words, and whether texts are shown to it.
    text_roles: Vec<(&'static str, &'static str, bool)>,
    secret: Option<String>,
    verify: &'static str,
}

/// A token in the list and on the page that confirms its deletion.
struct TokenRow {
    id: u64,
    name: String,
    is_of_client: bool,
    is_refresh: bool,
    routes: Vec<&'static str>,
    networks: Vec<String>,
    created: Moment,
    last_used: Option<Moment>,
    expires: Option<Moment>,
    is_expired: bool,
    /// What the client may spend with it on one day.
    daily_cap: Option<String>,
}

impl TokenRow {
    fn new(token: TokenRecord, now: Timestamp) -> Self {
        let is_expired = token.access.is_expired(now);
        let access = token.access;
        Self {
            id: token.id.get(),
            is_of_client: access.name.starts_with("oauth:"),
            is_refresh: access.name.starts_with("oauth:refresh:"),
            routes: access
                .permissions
                .iter()
                .map(domain::Permission::name)
                .collect(),
            networks: access.allow.networks().iter().map(network).collect(),
            name: access.name,
            created: token.created_at.into(),
            last_used: token.last_used_at.map(Moment::from),
            expires: access.expires.map(Moment::from),
            is_expired,
            daily_cap: access.grant_cap.map(|cap| cap.daily.to_string()),
        }
    }
}

/// A network with a single address is shown as that address.
fn network(network: &IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    query: Query,
) -> Result<Response, Failure> {
    let frame = match admin.said(&query) {
        Some("deleted") => admin
            .frame()
            .with_success("Deleted. The next call with this token is answered with 401."),
        Some("changed") => admin
            .frame()
            .with_success("Saved. The change takes effect within a second."),
        Some("disconnected") => admin
            .frame()
            .with_success("Disconnected. The client’s next call is answered with 401."),
        Some("admins") => admin.frame().with_success(
            "From now on only admins can connect AI clients. Connected clients stay connected.",
        ),
        Some("rotated") => admin.frame().with_success(
            "The signing secret was replaced. Show it below and give it to your receivers; callbacks are signed with both for a day.",
        ),
        Some("texts") => admin
            .frame()
            .with_success("Saved. Open pages show it when they are loaded again."),
        Some("everybody") => admin
            .frame()
            .with_success("From now on members can connect AI clients, too."),
        _ => admin.frame(),
    };
    page(&dashboard, &admin, frame, None).await
}

async fn page(
    dashboard: &Dashboard,
    admin: &Admin,
    frame: Frame,
    secret: Option<String>,
) -> Result<Response, Failure> {
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    let now = dashboard.engine.now();
    let grants = &dashboard.engine.grants;
    let clients = grants.list_connected(admin.account.id).await?;
    let page = TokensPage {
        frame,
        clients: clients.into_iter().map(ClientRow::from).collect(),
        currency: dashboard.settings.currency.clone(),
        admins_consent_only: admin.account.rules.admins_consent_only,
        text_roles: text_roles(&admin.account.rules.texts_for),
        tokens: tokens
            .into_iter()
            .rev()
            .map(|token| TokenRow::new(token, now))
            .collect(),
        secret,
        verify: VERIFY,
    };
    Ok(show_page(StatusCode::OK, &page))
}

fn text_roles(shown: &TextRoles) -> Vec<(&'static str, &'static str, bool)> {
    let words = |role: Role| match role {
        Role::Operator => "Operators of the service",
        Role::Admin => "Admins",
        Role::Member => "Members",
    };
    let row = |role: Role| (role.name(), words(role), shown.includes(role));
    Role::ALL.into_iter().map(row).collect()
}

/// Shows the secret that signs callbacks.
async fn show_secret(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let question = Question {
        title: "Show the signing secret?",
        text: "Anyone who has it can send your receivers callbacks that look genuine.",
        button: "Show",
        back: HERE,
        is_dangerous: false,
    };
    admin
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let accounts = &dashboard.engine.accounts;
    let secret = accounts
        .callback_secret(&admin.by(), &admin.account)
        .await?;
    page(&dashboard, &admin, admin.frame(), Some(secret)).await
}

#[derive(Template)]
#[template(path = "tokens/rotate.html")]
struct RotatePage {
    frame: Frame,
    hours: i64,
}

async fn ask_rotate(admin: Admin) -> Response {
    let page = RotatePage {
        frame: admin.frame(),
        hours: SECRET_OVERLAP.as_hours(),
    };
    show_page(StatusCode::OK, &page)
}

/// Redirects, so that reloading the page does not replace the secret again: the one before would be lost at once.
async fn rotate_secret(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    _form: Posted,
) -> Result<Response, Failure> {
    let accounts = &dashboard.engine.accounts;
    let rotated = accounts
        .rotate_callback_secret(&admin.by(), &admin.account, SECRET_OVERLAP)
        .await;
    match rotated {
        Ok(_) => Ok(admin.redirect_saying(HERE, "rotated")),
        Err(AccountError::Store(error)) => Err(error.into()),
        Err(_) => Err(Failure::NotFound(Box::new(admin.frame()))),
    }
}

#[derive(Template)]
#[template(path = "tokens/delete.html")]
struct DeletePage {
    frame: Frame,
    token: TokenRow,
}

/// Finds a token of the account. Those of other accounts are not found.
async fn find(dashboard: &Dashboard, admin: &Admin, id: &str) -> Result<TokenRecord, Failure> {
    let missing = || Failure::NotFound(Box::new(admin.frame()));
    let id: TokenId = id.parse().map_err(|_| missing())?;
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    tokens
        .into_iter()
        .find(|token| token.id == id)
        .ok_or_else(missing)
}

/// Finds a token that a person of the account created. Those of AI clients are not found.
async fn find_own(dashboard: &Dashboard, admin: &Admin, id: &str) -> Result<TokenRecord, Failure> {
    let token = find(dashboard, admin, id).await?;
    if token.grant.is_some() {
        return Err(Failure::NotFound(Box::new(admin.frame())));
    }
    Ok(token)
}

async fn ask_delete(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
) -> Result<Response, Failure> {
    let token = find(&dashboard, &admin, &id).await?;
    let page = DeletePage {
        frame: admin.frame(),
        token: TokenRow::new(token, dashboard.engine.now()),
    };
    Ok(show_page(StatusCode::OK, &page))
}

async fn delete(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
    _form: Posted,
) -> Result<Response, Failure> {
    let token = find(&dashboard, &admin, &id).await?;
    let accounts = &dashboard.engine.accounts;
    let account = Some(admin.account.id);
    match accounts.revoke_token(&admin.by(), account, token.id).await {
        // Somebody else has deleted it already.
        Ok(()) | Err(AccountError::UnknownToken(_)) => {}
        Err(AccountError::Store(error)) => return Err(error.into()),
        Err(_) => return Err(Failure::NotFound(Box::new(admin.frame()))),
    }
    Ok(admin.redirect_saying(HERE, "deleted"))
}
