//! What a browser brings along: its session, and the proof that a form is its own page's.
//!
//! The session's cookie is `SameSite=Lax`: whoever comes from an AI client's site to the consent page must be known
//! there. So it is sent with plain links from elsewhere, and what protects every form is a token of its own: the hash of
//! what the form is for and of a secret in a cookie. Signed in, that secret is the session; before, a cookie that serves
//! for nothing else.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::access::token::TokenHash;
use domain::person::Device;
use engine::identity::sign_in::{self, BROWSER_LIFETIME, HALF_LIFETIME, SESSION_LIFETIME};
use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use crate::Dashboard;
use crate::kit::form::Form;
use crate::kit::user_agent;
use requests::{client_address, cookie};

/// The name of a form's token, and of its field.
pub(crate) const FORM_TOKEN: &str = "form_token";
/// How many random bytes make the secret of whoever is not signed in.
const KEY_BYTES: usize = 24;

/// What came with a request.
pub(crate) struct Visit {
    /// The session's secret, not yet looked up.
    pub(crate) session: Option<String>,
    /// The secret of a sign-in that waits for its second factor.
    pub(crate) half: Option<String>,
    /// The secret of a browser that somebody signed in with before.
    known_as: Option<String>,
    /// The caller's address.
    pub(crate) address: IpAddr,
    browser: String,
    key: Option<String>,
    from_elsewhere: bool,
}

impl FromRequestParts<Arc<Dashboard>> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Arc<Dashboard>,
    ) -> Result<Self, Infallible> {
        let names = dashboard.cookie_names();
        // Browsers say it themselves. `none` is somebody who typed or reloaded.
        let site = parts.headers.get("sec-fetch-site");
        let from_elsewhere = site.is_some_and(|site| site != "same-origin" && site != "none");
        Ok(Self {
            session: cookie(&parts.headers, names.session).map(str::to_owned),
            half: cookie(&parts.headers, names.half).map(str::to_owned),
            known_as: cookie(&parts.headers, names.browser).map(str::to_owned),
            browser: browser_of(&parts.headers),
            address: client_address(parts, &dashboard.settings.trusted_proxies),
            key: cookie(&parts.headers, names.key)
                .filter(|key| is_key(key))
                .map(str::to_owned),
            from_elsewhere,
        })
    }
}

impl Visit {
    /// Where whoever signs in does so.
    pub(crate) fn device(&self) -> Device {
        Device {
            address: Some(self.address),
            browser: self.browser.clone(),
        }
    }

    /// What whoever signs in brings along.
    pub(crate) fn sign_in<'a>(&'a self, device: &'a Device) -> sign_in::Visit<'a> {
        sign_in::Visit {
            device,
            browser: self.known_as.as_deref(),
            replaced: self.session.as_deref(),
        }
    }

    /// Whether a form was sent by the page that this browser got from us for just this purpose. `secret` is the session,
    /// or nothing before signing in.
    pub(crate) fn sent(&self, form: &Form, purpose: &str, session: Option<&str>) -> bool {
        let Some(secret) = session.or(self.key.as_deref()) else {
            return false;
        };
        let given = form.get(FORM_TOKEN).unwrap_or_default();
        // Compared as fingerprints, so that no number of letters that are right takes longer.
        let right = TokenHash::of(given) == TokenHash::of(&form_token(secret, purpose));
        right && !self.from_elsewhere
    }

    /// The secret for the forms of whoever is not signed in; a new one where the browser has none yet.
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

/// The secret of a browser that is not signed in.
pub(crate) struct FormKey {
    key: String,
    is_new: bool,
}

impl FormKey {
    /// The token of a form.
    pub(crate) fn token(&self, purpose: &str) -> String {
        form_token(&self.key, purpose)
    }

    /// The cookie to set, where the browser has none.
    pub(crate) fn cookie(&self, dashboard: &Dashboard) -> Option<HeaderValue> {
        let name = dashboard.cookie_names().key;
        self.is_new.then(|| dashboard.cookie(name, &self.key, None))
    }
}

/// The token of a form for one purpose.
pub(crate) fn form_token(secret: &str, purpose: &str) -> String {
    let hash = TokenHash::of(&format!("form\n{purpose}\n{secret}"));
    hex(hash.as_bytes())
}

/// Nobody guesses it.
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

/// What the cookies are called.
pub(crate) struct CookieNames {
    session: &'static str,
    half: &'static str,
    key: &'static str,
    browser: &'static str,
}

impl CookieNames {
    /// `__Host-` binds a cookie to this host over HTTPS; a browser would not take it over plain HTTP.
    const fn new(secure: bool) -> Self {
        if secure {
            Self {
                session: "__Host-switchboard",
                half: "__Host-switchboard-half",
                key: "__Host-switchboard-form",
                browser: "__Host-switchboard-browser",
            }
        } else {
            Self {
                session: "switchboard",
                half: "switchboard-half",
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

    /// The cookie of a session that begins.
    pub(crate) fn session_cookie(&self, session: &str) -> HeaderValue {
        let name = self.cookie_names().session;
        self.cookie(name, session, Some(SESSION_LIFETIME.as_secs()))
    }

    /// What makes a browser forget its session.
    pub(crate) fn no_session_cookie(&self) -> HeaderValue {
        self.cookie(self.cookie_names().session, "", Some(0))
    }

    /// The cookie of a sign-in that waits for its second factor.
    pub(crate) fn half_cookie(&self, half: &str) -> HeaderValue {
        let name = self.cookie_names().half;
        self.cookie(name, half, Some(HALF_LIFETIME.as_secs()))
    }

    /// What makes a browser forget a sign-in that waited for its second factor.
    pub(crate) fn no_half_cookie(&self) -> HeaderValue {
        self.cookie(self.cookie_names().half, "", Some(0))
    }

    /// Remembers the browser of a session that begins: the cookie by which it is known from now on.
    pub(crate) async fn known_cookie(&self, visit: &Visit, session: &str) -> Option<HeaderValue> {
        let brought = visit.known_as.as_deref();
        let remembered = self.engine.sign_in.remember_browser(session, brought).await;
        match remembered {
            Ok(known) => known.map(|known| {
                let name = self.cookie_names().browser;
                self.cookie(name, &known, Some(BROWSER_LIFETIME.as_secs()))
            }),
            Err(error) => {
                // The person is signed in all the same; their next wrong password counts as a stranger's.
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

fn browser_of(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok());
    user_agent::in_words(agent.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

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
