//! What an upstream is reached by.

use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use url::Url;

/// The header that carries the token, unless the upstream has another one.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-service-token");
/// How long an answer is waited for, unless the configuration says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What an upstream is reached by.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// The carrier's name.
    pub name: String,
    /// The base of the upstream's API.
    pub url: Url,
    /// The token of our account there.
    pub token: String,
    /// The header that carries it; see [`TOKEN_HEADER`].
    pub header: HeaderName,
    /// The base of our own API as the upstream reaches it: its reports come in below.
    pub report_url: Url,
    /// How many parts may be with it at once, and so the most connections.
    pub window: usize,
    /// How many parts it may get in a second.
    pub max_per_second: Option<u32>,
    /// How long an answer is waited for; then the message is tried again.
    pub timeout: Duration,
}

/// Without the token.
impl fmt::Debug for UpstreamSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSettings")
            .field("name", &self.name)
            .field("host", &self.url.host_str())
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

/// Settings that cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// An address that nothing can be sent to.
    #[error("the URL must start with http:// or https:// and hold no user, query or fragment")]
    Url,
    /// A token that no header can hold.
    #[error("the token must be made of visible ASCII characters")]
    Token,
    /// Nothing could ever be sent.
    #[error("the window, the rate and the time limit must be more than 0")]
    Zero,
}

impl UpstreamSettings {
    /// Whether they can work at all.
    pub fn check(&self) -> Result<(), BadSettings> {
        let is_plain = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        };
        if !is_plain(&self.url) || !is_plain(&self.report_url) {
            return Err(BadSettings::Url);
        }
        let is_visible = self.token.bytes().all(|b| b.is_ascii_graphic());
        if self.token.is_empty() || !is_visible || HeaderValue::from_str(&self.token).is_err() {
            return Err(BadSettings::Token);
        }
        if self.window == 0 || self.max_per_second == Some(0) || self.timeout.is_zero() {
            return Err(BadSettings::Zero);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> UpstreamSettings {
        UpstreamSettings {
            name: "up".to_owned(),
            url: "https://upstream.example/api".parse().expect("a URL"),
            token: "sb_secret".to_owned(),
            header: TOKEN_HEADER,
            report_url: "https://sms.example".parse().expect("a URL"),
            window: 50,
            max_per_second: None,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    #[test]
    fn settings_that_cannot_work_are_found() {
        type Change = fn(&mut UpstreamSettings);
        let url = |text: &str| text.parse::<Url>().expect("a URL");
        assert_eq!(settings().check(), Ok(()));
        for (name, change, problem) in [
            (
                "scheme",
                (|s| s.url = "ftp://a.example".parse().expect("a URL")) as Change,
                BadSettings::Url,
            ),
            (
                "password",
                |s| s.url.set_password(Some("x")).expect("has a host"),
                BadSettings::Url,
            ),
            ("query", |s| s.url.set_query(Some("a=b")), BadSettings::Url),
            (
                "fragment",
                |s| s.report_url.set_fragment(Some("a")),
                BadSettings::Url,
            ),
            ("no token", |s| s.token.clear(), BadSettings::Token),
            (
                "token of two lines",
                |s| s.token = "a\nb".to_owned(),
                BadSettings::Token,
            ),
            ("no window", |s| s.window = 0, BadSettings::Zero),
            ("no rate", |s| s.max_per_second = Some(0), BadSettings::Zero),
            ("no time", |s| s.timeout = Duration::ZERO, BadSettings::Zero),
        ] {
            let mut changed = settings();
            change(&mut changed);
            assert_eq!(changed.check(), Err(problem), "{name}");
        }
        let with_port = UpstreamSettings {
            url: url("http://127.0.0.1:8080/"),
            ..settings()
        };
        assert_eq!(with_port.check(), Ok(()));
    }

    #[test]
    fn the_token_is_not_shown() {
        assert!(!format!("{:?}", settings()).contains("sb_secret"));
    }
}
