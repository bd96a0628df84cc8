//! The dashboard: server-rendered pages behind a session. So far: signing in by a one-time link, and an overview.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use domain::AccountId;
use domain::ports::StoreError;
use engine::Engine;
use engine::sign_in::SESSION_LIFETIME;
use http::header::{
    CONTENT_SECURITY_POLICY, COOKIE, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::rest::wrong_method;

/// No script, no outside asset, no frame; styles only from the page itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// How the dashboard is reached.
#[derive(Debug, Clone)]
pub struct DashboardSettings {
    /// Whether it is served over HTTPS, so that its cookie may insist on it.
    pub secure: bool,
    /// The address of the REST API, for the examples.
    pub base_url: String,
    /// The currency of every amount.
    pub currency: String,
}

/// The pages.
pub struct Dashboard {
    engine: Arc<Engine>,
    settings: DashboardSettings,
}

impl Dashboard {
    /// The pages on these use cases.
    pub fn new(engine: Arc<Engine>, settings: DashboardSettings) -> Arc<Self> {
        Arc::new(Self { engine, settings })
    }

    /// The routes.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/dashboard", get(overview))
            .route("/dashboard/sign-in/{link}", get(ask).post(sign_in))
            .route("/dashboard/sign-out", post(sign_out))
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }

    /// `__Host-` binds the cookie to this host over HTTPS; a browser would not take it over plain HTTP.
    fn cookie_name(&self) -> &'static str {
        if self.settings.secure {
            "__Host-switchboard"
        } else {
            "switchboard"
        }
    }

    fn cookie(&self, session: &str, seconds: i64) -> HeaderValue {
        let secure = if self.settings.secure { "; Secure" } else { "" };
        let name = self.cookie_name();
        let cookie = format!(
            "{name}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
        );
        HeaderValue::from_str(&cookie).expect("letters and digits")
    }

    fn session<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.cookie_name();
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
    }

    async fn signed_in(&self, headers: &HeaderMap) -> Result<Option<AccountId>, StoreError> {
        match self.session(headers) {
            Some(session) => self.engine.sign_in.find(session).await,
            None => Ok(None),
        }
    }
}

#[derive(Template)]
#[template(path = "notice.html")]
struct Notice<'a> {
    title: &'a str,
    text: &'a str,
    button: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    account: String,
    balance: String,
    base_url: String,
    tokens: Vec<TokenRow>,
}

struct TokenRow {
    id: u64,
    name: String,
    permissions: String,
    networks: String,
    expires: String,
}

async fn overview(State(dashboard): State<Arc<Dashboard>>, headers: HeaderMap) -> Response {
    match dashboard.signed_in(&headers).await {
        Ok(Some(account)) => match render_overview(&dashboard, account).await {
            Ok(response) => response,
            Err(error) => failed(&error),
        },
        Ok(None) => notice(
            StatusCode::UNAUTHORIZED,
            "Not signed in",
            "Open the one-time link that the service printed at its first start.",
        ),
        Err(error) => failed(&error),
    }
}

async fn render_overview(
    dashboard: &Dashboard,
    account: AccountId,
) -> Result<Response, StoreError> {
    let Some(record) = dashboard.engine.accounts.find_by_id(account).await? else {
        return Ok(notice(
            StatusCode::NOT_FOUND,
            "No account",
            "The account of this session no longer exists.",
        ));
    };
    let tokens = dashboard.engine.accounts.list_tokens(Some(account)).await?;
    let page = Overview {
        account: record.name,
        balance: format!("{} {}", record.balance, dashboard.settings.currency),
        base_url: dashboard.settings.base_url.clone(),
        tokens: tokens
            .into_iter()
            .map(|token| TokenRow {
                id: token.access.token.get(),
                name: token.access.token_name,
                permissions: token.access.permissions.to_names(),
                networks: token.access.allow.to_string(),
                expires: token
                    .access
                    .expires
                    .map_or_else(|| "never".to_owned(), |time| time.to_string()),
            })
            .collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

/// Asks before the link is used up: programs that look at links in advance only ever ask.
async fn ask() -> Response {
    let page = Notice {
        title: "Sign in",
        text: "This link works once.",
        button: Some("Sign in"),
    };
    show(StatusCode::OK, &page)
}

async fn sign_in(State(dashboard): State<Arc<Dashboard>>, Path(link): Path<String>) -> Response {
    match dashboard.engine.sign_in.redeem(&link).await {
        Ok(Some(session)) => {
            let cookie = dashboard.cookie(&session, SESSION_LIFETIME.as_secs());
            ([(SET_COOKIE, cookie)], Redirect::to("/dashboard")).into_response()
        }
        Ok(None) => notice(
            StatusCode::NOT_FOUND,
            "This link does not work",
            "It was used before, has expired, or was not copied whole.",
        ),
        Err(error) => failed(&error),
    }
}

/// The cookie is `SameSite=Strict`, so no other site can sign anybody out.
async fn sign_out(State(dashboard): State<Arc<Dashboard>>, headers: HeaderMap) -> Response {
    if let Some(session) = dashboard.session(&headers)
        && let Err(error) = dashboard.engine.sign_in.end(session).await
    {
        return failed(&error);
    }
    (
        [(SET_COOKIE, dashboard.cookie("", 0))],
        Redirect::to("/dashboard"),
    )
        .into_response()
}

fn failed(error: &StoreError) -> Response {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, cause, "a page failed");
    notice(
        StatusCode::SERVICE_UNAVAILABLE,
        "Not now",
        "The service cannot reach its database. Try again shortly.",
    )
}

fn notice(status: StatusCode, title: &str, text: &str) -> Response {
    show(
        status,
        &Notice {
            title,
            text,
            button: None,
        },
    )
}

fn show(status: StatusCode, page: &impl Template) -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // The one-time link must not travel on in a Referer header.
        (REFERRER_POLICY, "no-referrer"),
    ];
    match page.render() {
        Ok(html) => (status, headers, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
