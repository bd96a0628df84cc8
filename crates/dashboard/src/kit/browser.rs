//! Cookies of a browser, and protection against forged forms.
//!
//! The session cookie is `SameSite=Lax`, because people come to the consent page from the site of an AI client. So
//! browsers send it with links from other sites, and each form has a token of its own: the hash of the form's purpose
//! and of a secret in a cookie. After signing in, that secret is the session; before, a cookie that has no other use.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::access::token::TokenHash;
use domain::person::Device;
use engine::identity::sign_in::{
    self, BROWSER_LIFETIME, PENDING_SIGN_IN_LIFETIME, SESSION_LIFETIME,
};
use http::header::{HOST, ORIGIN, USER_AGENT};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};
use requests::{client_address, cookie};

use crate::Dashboard;
use crate::kit::form::Form;
use crate::kit::user_agent;

/// The field of a form that holds its token.
pub(crate) const FORM_TOKEN: &str = "form_token";
const KEY_BYTES: usize = 24;

/// The browser that sent a request.
pub(crate) struct Browser {
    /// The session's secret, not yet checked.
    pub(crate) session: Option<String>,
    /// The secret of a pending sign-in.
    pub(crate) pending_sign_in: Option<String>,
    /// The secret of a browser that was used to sign in before.
    known_secret: Option<String>,
    pub(crate) address: IpAddr,
    name: String,
    key: Option<String>,
    is_cross_site: bool,
}

impl FromRequestParts<Arc<Dashboard>> for Browser {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Infallible> {
        let names = dashboard.cookie_names();
        // `none`: the address was typed or reloaded. Older browsers send only `Origin`.
        let is_cross_site = match parts.headers.get("sec-fetch-site") {
            Some(site) => site != "same-origin" && site != "none",
            None => has_foreign_origin(parts, &dashboard.settings.dashboard_url),
        };
        Ok(Self {
            session: cookie(&parts.headers, names.session).map(str::to_owned),
            pending_sign_in: cookie(&parts.headers, names.pending).map(str::to_owned),
            known_secret: cookie(&parts.headers, names.browser).map(str::to_owned),
            name: browser_name(&parts.headers),
            address: client_address(parts, &dashboard.settings.trusted_proxies),
            key: cookie(&parts.headers, names.key)
                .filter(|key| is_key(key))
                .map(str::to_owned),
            is_cross_site,
        })
    }
}

impl Browser {
    pub(crate) fn device(&self) -> Device {
        Device {
            address: Some(self.address),
            browser: self.name.clone(),
        }
    }

    pub(crate) fn sign_in<'a>(&'a self, device: &'a Device) -> sign_in::SignInContext<'a> {
        sign_in::SignInContext {
            device,
            browser: self.known_secret.as_deref(),
            replaced: self.session.as_deref(),
        }
    }

    /// Whether a form comes from a page that we sent to this browser for this purpose. `session` is `None` before
    /// signing in.
    pub(crate) fn sent(&self, form: &Form, purpose: &str, session: Option<&str>) -> bool {
        let Some(secret) = session.or(self.key.as_deref()) else {
            return false;
        };
        let given = form.get(FORM_TOKEN).unwrap_or_default();
        // Hashes are compared, so that the time does not tell how many characters are right.
        let right =
            TokenHash::from_secret(given) == TokenHash::from_secret(&form_token(secret, purpose));
        right && !self.is_cross_site
    }

    /// The secret for forms before signing in; a random one if the browser has none.
    pub(crate) fn form_key(&self) -> FormKey {
        match &self.key {
            Some(key) => FormKey {
                key: key.clone(),
                is_new: false,
            },
            None => FormKey {
                key: random_key(),
                is_new: true,
            },
        }
    }
}

/// The secret for forms before signing in.
pub(crate) struct FormKey {
    key: String,
    is_new: bool,
}

impl FormKey {
    pub(crate) fn token(&self, purpose: &str) -> String {
        form_token(&self.key, purpose)
    }

    /// The cookie to set, if the browser has none.
    pub(crate) fn cookie(&self, dashboard: &Dashboard) -> Option<HeaderValue> {
        let name = dashboard.cookie_names().key;
        self.is_new.then(|| dashboard.cookie(name, &self.key, None))
    }
}

pub(crate) fn form_token(secret: &str, purpose: &str) -> String {
    let hash = TokenHash::from_secret(&format!("form\n{purpose}\n{secret}"));
    hex(hash.as_bytes())
}

pub(crate) fn random_key() -> String {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    hex(&bytes)
}

fn is_key(text: &str) -> bool {
    text.len() == 2 * KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}

pub(crate) struct CookieNames {
    session: &'static str,
    pending: &'static str,
    key: &'static str,
    browser: &'static str,
}

impl CookieNames {
    /// `__Host-` binds a cookie to this host and HTTPS; browsers reject it over plain HTTP.
    const fn new(secure: bool) -> Self {
        if secure {
            Self {
                session: "__Host-switchboard",
                pending: "__Host-switchboard-half",
                key: "__Host-switchboard-form",
                browser: "__Host-switchboard-browser",
            }
        } else {
            Self {
                session: "switchboard",
                pending: "switchboard-half",
                key: "switchboard-form",
                browser: "switchboard-browser",
            }
        }
    }
}

/// The name of the cookie that holds the session's secret.
pub const fn session_cookie_name(secure: bool) -> &'static str {
    CookieNames::new(secure).session
}

impl Dashboard {
    fn cookie_names(&self) -> CookieNames {
        CookieNames::new(self.settings.secure)
    }

    pub(crate) fn session_cookie(&self, session: &str) -> HeaderValue {
        let name = self.cookie_names().session;
        self.cookie(name, session, Some(SESSION_LIFETIME.as_secs()))
    }

    pub(crate) fn clear_session_cookie(&self) -> HeaderValue {
        self.cookie(self.cookie_names().session, "", Some(0))
    }

    pub(crate) fn pending_cookie(&self, secret: &str) -> HeaderValue {
        let name = self.cookie_names().pending;
        self.cookie(name, secret, Some(PENDING_SIGN_IN_LIFETIME.as_secs()))
    }

    pub(crate) fn clear_pending_cookie(&self) -> HeaderValue {
        self.cookie(self.cookie_names().pending, "", Some(0))
    }

    /// Remembers the browser of a session, and returns the cookie that identifies it.
    pub(crate) async fn known_browser_cookie(
        &self,
        browser: &Browser,
        session: &str,
    ) -> Option<HeaderValue> {
        let brought = browser.known_secret.as_deref();
        let remembered = self.engine.sign_in.remember_browser(session, brought).await;
        match remembered {
            Ok(known) => known.map(|known| {
                let name = self.cookie_names().browser;
                self.cookie(name, &known, Some(BROWSER_LIFETIME.as_secs()))
            }),
            Err(error) => {
                // The person is signed in; only their next wrong password counts as an unknown browser's.
                tracing::warn!(%error, "it could not be remembered who signed in with a browser");
                None
            }
        }
    }

    fn cookie(&self, name: &str, value: &str, seconds: Option<i64>) -> HeaderValue {
        let secure = if self.settings.secure { "; Secure" } else { "" };
        let age = seconds.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}{secure}");
        HeaderValue::from_str(&cookie).expect("letters and digits")
    }
}

/// Whether `Origin` names another host than the one of this request and that of the dashboard. Browsers send `null` for
/// forms of our own pages, because these have the referrer policy `no-referrer`.
fn has_foreign_origin(parts: &Parts, dashboard_url: &str) -> bool {
    let Some(origin) = parts.headers.get(ORIGIN).filter(|origin| *origin != "null") else {
        return false;
    };
    let authority = |url: &str| url.parse::<Uri>().ok()?.into_parts().authority;
    let Some(origin) = origin.to_str().ok().and_then(authority) else {
        return true;
    };
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| parts.uri.authority().map(Authority::as_str));
    let is_host = host.is_some_and(|host| origin == *host);
    !is_host && authority(dashboard_url) != Some(origin)
}

fn browser_name(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok());
    user_agent::describe(agent.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_origin_is_recognized() {
        const OWN: &str = "https://dashboard.example.com/dashboard";
        for (origin, host, foreign) in [
            (None, Some("127.0.0.1:8080"), false),
            (Some("null"), Some("127.0.0.1:8080"), false),
            (Some("http://127.0.0.1:8080"), Some("127.0.0.1:8080"), false),
            (
                Some("https://dashboard.example.com"),
                Some("internal:8080"),
                false,
            ),
            (Some("https://dashboard.example.com"), None, false),
            (Some("https://evil.example"), Some("127.0.0.1:8080"), true),
            (Some("https://evil.example"), None, true),
            (Some("http://127.0.0.1:9"), Some("127.0.0.1:8080"), true),
            (
                Some("https://dashboard.example.com.evil.example"),
                Some("internal"),
                true,
            ),
            (Some("nonsense of a page"), Some("internal"), true),
        ] {
            let mut request = http::Request::new(());
            let headers = request.headers_mut();
            for (name, value) in [(ORIGIN, origin), (HOST, host)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            let (parts, ()) = request.into_parts();
            assert_eq!(
                has_foreign_origin(&parts, OWN),
                foreign,
                "{origin:?} {host:?}"
            );
        }
    }

    #[test]
    fn a_token_belongs_to_one_secret_and_one_purpose() {
        let token = form_token("secret", "consent 1");
        assert_eq!(token.len(), 64);
        assert_eq!(token, form_token("secret", "consent 1"));
        for (secret, purpose) in [
            ("secret", "consent 2"),
            ("other", "consent 1"),
            ("1\nsecret", "consent"),
        ] {
            assert_ne!(token, form_token(secret, purpose), "{secret} {purpose}");
        }
    }
}
