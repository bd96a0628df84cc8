//! Settings of an upstream.

use std::fmt;
use std::time::Duration;

use http::HeaderName;
use url::Url;

use crate::proof::ProofKey;
use crate::texts;

/// The default header for the token.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-service-token");

#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamSettings {
    pub name: String,
    /// The base URL of the upstream's API.
    pub url: Url,
    /// The token of our account there.
    pub token: String,
    /// The header for the token; see [`TOKEN_HEADER`].
    pub header: HeaderName,
    /// The base URL of our own API, as the upstream reaches it; its reports go to URLs below.
    pub report_url: Url,
    /// How many parts may be in flight, which also limits the connections.
    pub window: usize,
    /// The maximum rate in parts a second.
    pub max_per_second: Option<u32>,
    /// How long to wait for a response before the message is tried again.
    pub timeout: Duration,
}

impl UpstreamSettings {
    /// Where the upstream sends texts from handsets. It contains a proof, so it must not be logged.
    pub fn inbound_url(&self) -> Url {
        let key = ProofKey::new(self.token.as_bytes());
        texts::inbound_url(&self.report_url, &self.name, &key)
    }
}

/// Omits the token.
impl fmt::Debug for UpstreamSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSettings")
            .field("name", &self.name)
            .field("host", &self.url.host_str())
            .field("window", &self.window)
            .finish_non_exhaustive()
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
            timeout: Duration::from_secs(10),
        }
    }

    #[test]
    fn the_token_is_not_shown() {
        assert!(!format!("{:?}", settings()).contains("sb_secret"));
    }
}
