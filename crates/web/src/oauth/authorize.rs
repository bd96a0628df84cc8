//! The authorization endpoint.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use engine::identity::grants::{AuthorizeError, AuthorizeParams, WrongQuestion};
use engine::identity::sign_in::SessionError;
use http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use requests::cookie;

use super::refusal::Refusal;
use super::{OAuth, no_store};

/// For answers without content.
const POLICY: &str =
    "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

pub(super) async fn authorize(State(oauth): State<Arc<OAuth>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let address = oauth.address(&parts);
    if let Some(seconds) = oauth.grants().slow_down(address) {
        return oauth.refuse(&parts.headers, Refusal::slow_down(seconds));
    }
    let query = parts.uri.query().unwrap_or("");
    let pairs = url::form_urlencoded::parse(query.as_bytes()).into_owned();
    let asked = AuthorizeParams::from_pairs(pairs);
    match oauth.grants().begin(address, &asked).await {
        Ok(pending) => redirect(&format!("{}/{}", oauth.settings.consent_url, pending.id)),
        Err(AuthorizeError::Wrong(wrong))
            if oauth.may_send_back(&parts.headers, address, &wrong).await =>
        {
            redirect(wrong.redirect.as_str())
        }
        Err(AuthorizeError::Wrong(wrong)) => {
            let (error, words) = (wrong.error, wrong.description);
            let refusal = Refusal::new(StatusCode::BAD_REQUEST, error, words);
            oauth.refuse(&parts.headers, refusal)
        }
        Err(AuthorizeError::Quoted(words)) => {
            oauth.refuse(&parts.headers, Refusal::invalid_request(words))
        }
        Err(AuthorizeError::Store(error)) => oauth.refuse(&parts.headers, error.into()),
    }
}

impl OAuth {
    /// Whether a person may be redirected to a client whose request is wrong: it runs on their own machine, or they are
    /// signed in and their account is connected to it. Otherwise this service could be used to redirect people
    /// anywhere.
    async fn may_send_back(
        &self,
        headers: &HeaderMap,
        address: IpAddr,
        wrong: &WrongQuestion,
    ) -> bool {
        if wrong.is_loopback {
            return true;
        }
        let Some(session) = cookie(headers, self.settings.session_cookie) else {
            return false;
        };
        let known = async {
            let signed_in = self.engine.sign_in.find(session, address).await?;
            let account = signed_in.and_then(|signed_in| signed_in.account());
            let Some(account) = account else {
                return Ok::<_, SessionError>(false);
            };
            let grants = self.grants();
            Ok(grants.is_connected(account, &wrong.client_id).await?)
        };
        known.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "it is not known whether a person knows a client");
            false
        })
    }

    /// A page for people, JSON for programs.
    fn refuse(&self, headers: &HeaderMap, refusal: Refusal) -> Response {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        if !accept.is_some_and(|accept| accept.contains("text/html")) {
            return with_security_headers(refusal.into_response());
        }
        let mut page = (self.settings.refusal_page)(refusal.status(), refusal.description());
        if let Some(seconds) = refusal.retry_after_s() {
            page.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        page
    }
}

/// 303, so that the browser does not send form data along (RFC 9700, section 4.12).
fn redirect(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        tracing::error!("an address to be sent to is no header value");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(LOCATION, location);
    with_security_headers(response)
}

fn with_security_headers(mut response: Response) -> Response {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    no_store(response)
}
