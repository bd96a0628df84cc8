//! Allowed `Host` and `Origin` headers, against DNS rebinding: pages of other sites whose host name points to this
//! machine.

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use url::Url;

use super::McpSettings;

pub(super) struct AllowedHosts {
    hosts: Vec<Url>,
    origins: Vec<url::Origin>,
}

/// The header that is not allowed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotAllowed {
    #[error(
        "The header Host names an address that is not this server's; the setting urls.mcp says which is."
    )]
    Host,
    #[error("The header Origin names a page that may not call this server.")]
    Origin,
}

impl AllowedHosts {
    pub(super) fn new(settings: &McpSettings) -> Self {
        let mut hosts = vec![settings.mcp_url.clone()];
        hosts.extend(settings.own_urls.iter().cloned());
        let friends = settings.friendly_urls.iter().chain(&hosts);
        let origins = friends.map(Url::origin).collect();
        Self { hosts, origins }
    }

    /// Only browsers send `Origin`.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), NotAllowed> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.is_ours(host)) {
            return Err(NotAllowed::Host);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let known = |origin: &http::HeaderValue| {
            let origin = origin.to_str().ok().and_then(|text| Url::parse(text).ok());
            origin.is_some_and(|origin| self.origins.contains(&origin.origin()))
        };
        if origins.all(known) {
            Ok(())
        } else {
            Err(NotAllowed::Origin)
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        self.hosts.iter().any(|url| {
            let port = authority.port_u16().unwrap_or(default_port(url.scheme()));
            let name = url.host_str().unwrap_or("");
            name.eq_ignore_ascii_case(authority.host()) && url.port_or_known_default() == Some(port)
        })
    }
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}
