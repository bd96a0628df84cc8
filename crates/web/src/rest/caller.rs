//! Who calls: the extractor that every operation names, and with it the permission that it needs.

use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::access::any_contains;
use domain::{Access, Permission};
use engine::identity::rate::Requester;
use http::HeaderMap;
use http::request::Parts;
use ipnet::IpNet;

use super::{Problem, Rest};
use crate::rate;

/// The address at the other end of the connection, put there by the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// A permission as a type, so that an operation's signature says what it needs.
pub(crate) trait Need: Send {
    /// The permissions of which one is enough; none where any valid token will do.
    const PERMISSIONS: &'static [Permission];
}

macro_rules! need {
    ($($name:ident => [$($permission:ident),*]),* $(,)?) => {
        $(
            pub(crate) struct $name;
            impl Need for $name {
                const PERMISSIONS: &'static [Permission] = &[$(Permission::$permission),*];
            }
        )*
    };
}

need! {
    AnyToken => [],
    SmsSend => [SmsSend],
    SmsRead => [SmsRead],
    SmsReadOrSend => [SmsRead, SmsSend],
    ViberSend => [ViberSend],
    HlrLookup => [HlrLookup],
    SenderWrite => [SenderWrite],
    SmsRates => [SmsRates],
    NumbersRead => [NumbersRead],
}

/// A caller whose token was admitted for the operation.
pub(crate) struct Caller<N> {
    /// What the token stands for.
    pub(crate) access: Arc<Access>,
    need: PhantomData<N>,
}

impl<N: Need> FromRequestParts<Arc<Rest>> for Caller<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, rest: &Arc<Rest>) -> Result<Self, Problem> {
        let address = client_address(parts, &rest.settings.trusted_proxies);
        let header = parts.headers.get(&rest.settings.token_header);
        // A token that is not even text is a wrong token, not a missing one.
        let header = header.map(|value| value.to_str().unwrap_or(""));
        let query = if header.is_none() && rest.settings.query_token {
            query_token(parts)
        } else {
            None
        };
        let token = header.or(query.as_deref());
        let access = rest
            .engine
            .gate
            .admit(token, address, N::PERMISSIONS)
            .await?;
        rate::count(
            &rest.engine.gate,
            &parts.extensions,
            access.account,
            Requester::Programs,
            access.requests_per_second,
        )?;
        Ok(Self {
            access,
            need: PhantomData,
        })
    }
}

fn query_token(parts: &Parts) -> Option<String> {
    let query = parts.uri.query()?;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == "at")
        .map(|(_, token)| token.into_owned())
}

/// The caller's own address: the peer's, or, behind trusted proxies, the last one in `X-Forwarded-For` that is not
/// itself such a proxy. What stands further left is the caller's own claim.
pub(crate) fn client_address(parts: &Parts, trusted: &[IpNet]) -> IpAddr {
    let peer = parts
        .extensions
        .get::<Peer>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    if trusted.is_empty() || !any_contains(trusted, peer) {
        return peer.to_canonical();
    }
    let mut nearest = peer;
    for address in forwarded_for(&parts.headers) {
        let Some(address) = address else { break };
        nearest = address;
        if !any_contains(trusted, address) {
            break;
        }
    }
    nearest.to_canonical()
}

/// The addresses of all `X-Forwarded-For` headers, the nearest first; `None` for what is no address.
fn forwarded_for(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .map(|line| line.to_str().unwrap_or(""))
        .collect();
    lines
        .into_iter()
        .rev()
        .flat_map(|line| line.rsplit(',').map(|one| parse_address(one.trim())))
}

/// Some proxies add the port, and brackets with it.
fn parse_address(text: &str) -> Option<IpAddr> {
    let with_port = || {
        text.parse::<std::net::SocketAddr>()
            .ok()
            .map(|address| address.ip())
    };
    text.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_addresses_count_only_from_trusted_proxies() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().expect("a network")];
        for (peer, headers, expected) in [
            ("203.0.113.1", vec!["198.51.100.7"], "203.0.113.1"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.7"], "198.51.100.7"),
            ("::ffff:10.0.0.1", vec!["198.51.100.7"], "198.51.100.7"),
            (
                "10.0.0.1",
                vec!["6.6.6.6, 198.51.100.7, 10.0.0.2"],
                "198.51.100.7",
            ),
            ("10.0.0.1", vec!["6.6.6.6", "198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", vec!["198.51.100.7:4711"], "198.51.100.7"),
            ("10.0.0.1", vec!["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", vec!["nonsense"], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.7, nonsense"], "10.0.0.1"),
            ("10.0.0.1", vec!["10.0.0.9"], "10.0.0.9"),
        ] {
            let mut request = http::Request::builder();
            for line in &headers {
                request = request.header("X-Forwarded-For", *line);
            }
            let (mut parts, ()) = request.body(()).expect("a request").into_parts();
            parts
                .extensions
                .insert(Peer(peer.parse().expect("an address")));
            assert_eq!(
                client_address(&parts, &trusted).to_string(),
                expected,
                "{peer} {headers:?}"
            );
        }
    }
}
