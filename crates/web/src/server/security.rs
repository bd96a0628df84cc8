//! The security headers of every answer. Headers that a page sets itself are kept.

use std::net::IpAddr;

use domain::access::any_contains;
use http::header::{
    CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

/// For answers that are not pages: nothing is loaded, and no frames.
const POLICY: &str =
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// Browsers that used HTTPS must use it for a year.
const HTTPS_ONLY: &str = "max-age=31536000";

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

pub(super) struct Transport {
    /// The listener itself speaks TLS.
    pub(super) is_tls: bool,
    /// Proxies whose `X-Forwarded-Proto` is trusted.
    pub(super) trusted_proxies: Vec<IpNet>,
}

impl Transport {
    /// Whether a request came over HTTPS, here or to a trusted proxy.
    pub(super) fn is_https(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let is_forwarded = || {
            let proto = headers.get(FORWARDED_PROTO);
            proto.is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"))
                && any_contains(&self.trusted_proxies, peer)
        };
        self.is_tls || is_forwarded()
    }
}

pub(super) fn secure(headers: &mut HeaderMap, is_https: bool) {
    let defaults = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let https = is_https.then_some((STRICT_TRANSPORT_SECURITY, HTTPS_ONLY));
    for (name, value) in defaults.into_iter().chain(https) {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_is_recognized_here_and_behind_trusted_proxies() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().expect("a network")];
        for (is_tls, peer, proto, expected) in [
            (true, "192.0.2.1", None, true),
            (false, "192.0.2.1", None, false),
            (false, "192.0.2.1", Some("https"), false),
            (false, "10.0.0.1", Some("https"), true),
            (false, "10.0.0.1", Some("HTTPS"), true),
            (false, "10.0.0.1", Some("http"), false),
            (false, "10.0.0.1", None, false),
        ] {
            let transport = Transport {
                is_tls,
                trusted_proxies: trusted.clone(),
            };
            let mut headers = HeaderMap::new();
            if let Some(proto) = proto {
                headers.insert(FORWARDED_PROTO, HeaderValue::from_static(proto));
            }
            let peer = peer.parse().expect("an address");
            let is_https = transport.is_https(peer, &headers);
            assert_eq!(is_https, expected, "{is_tls} {peer} {proto:?}");
        }
    }

    #[test]
    fn a_page_keeps_its_own_policy() {
        let mut headers = HeaderMap::new();
        let own = HeaderValue::from_static("default-src 'self'");
        headers.insert(CONTENT_SECURITY_POLICY, own.clone());
        secure(&mut headers, false);
        assert_eq!(headers[CONTENT_SECURITY_POLICY], own);
        assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(!headers.contains_key(STRICT_TRANSPORT_SECURITY));
        secure(&mut headers, true);
        assert_eq!(headers[STRICT_TRANSPORT_SECURITY], HTTPS_ONLY);
    }
}
