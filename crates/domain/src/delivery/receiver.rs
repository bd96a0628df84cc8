//! The receivers of callbacks; each has a queue.

use std::fmt;
use std::sync::Arc;

use crate::ids::AccountId;
use crate::{CallbackUrl, sha256};

/// The scheme, host and port of a callback URL, in lower case; or `smpp:` and the system ID of an SMPP user.
///
/// Two spellings of one host are two origins. That is harmless: each gets its own limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(Arc<str>);

impl Origin {
    pub fn from_url(url: &CallbackUrl) -> Self {
        if url.is_smpp() {
            let system_id = url.as_str().split('/').next().unwrap_or_default();
            return Self(system_id.into());
        }
        let url = url.as_str();
        let start = url.find("://").map_or(0, |at| at + 3);
        let end = url[start..]
            .find(['/', '?', '#', '\\'])
            .map_or(url.len(), |at| start + at);
        Self(url[..end].to_ascii_lowercase().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name or address as it is written, without the port. `None` if only a parser can find it, as in `http:/host`.
    pub fn host(&self) -> Option<&str> {
        let http = self.0.strip_prefix("http://");
        let authority = http.or_else(|| self.0.strip_prefix("https://"))?;
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        };
        (!host.is_empty()).then_some(host)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A receiver: one account's callbacks to one origin. They share a queue, its limits and its pauses.
///
/// The ID is a hash of both, so every node finds the same queue without a table of receivers. The hash is
/// cryptographic: nobody can choose a host that shares a queue with another account's receiver.
///
/// Numbers from 2^62 on are SMPP users, so that a node can leave the queues of users alone that are not bound to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(i64);

impl ReceiverId {
    const BITS: u32 = 62;
    const SMPP: i64 = 1 << Self::BITS;

    pub fn new(account: AccountId, origin: &Origin) -> Self {
        let hash = sha256(&[&account.get().to_be_bytes(), origin.0.as_bytes()]);
        let first = hash.first_chunk().expect("a hash has 32 bytes");
        let number = u64::from_be_bytes(*first) >> (u64::BITS - Self::BITS);
        let number = number.cast_signed().max(1);
        if origin.0.starts_with("smpp:") {
            Self(number | Self::SMPP)
        } else {
            Self(number)
        }
    }

    /// Whether only SMPP sessions reach it.
    pub const fn is_smpp(self) -> bool {
        self.0 >= Self::SMPP
    }

    /// The stored form, at least 1.
    pub const fn as_i64(self) -> i64 {
        self.0
    }

    /// Reads the result of [`Self::as_i64`].
    pub const fn from_i64(number: i64) -> Option<Self> {
        if number >= 1 {
            Some(Self(number))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::from_url(&CallbackUrl::parse(url).expect(url))
    }

    fn account(id: u64) -> AccountId {
        AccountId::new(id).expect("in range")
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (url, expected) in [
            ("http://A.example/x?y", "http://a.example"),
            ("https://a.example:8443", "https://a.example:8443"),
            ("http://[::1]:80/a", "http://[::1]:80"),
            ("http://a.example?x", "http://a.example"),
        ] {
            assert_eq!(origin(url).as_str(), expected);
        }
    }

    #[test]
    fn the_host_is_without_the_port() {
        for (url, expected) in [
            ("http://A.example/x:1", Some("a.example")),
            ("https://a.example:8443?y", Some("a.example")),
            ("http://[::1]/", Some("[::1]")),
            ("http://[::1]:80/", Some("[::1]")),
            ("http://@a.example/", Some("@a.example")),
            ("http:/a.example/x", None),
            ("http:///a.example/x", None),
            ("http:/a.example://b.example/", None),
            (" http://a.example/", None),
        ] {
            assert_eq!(origin(url).host(), expected, "{url}");
        }
    }

    #[test]
    fn each_account_and_origin_has_its_own_receiver() {
        let here = origin("http://a.example/one");
        let receiver = ReceiverId::new(account(1), &here);
        assert_eq!(
            receiver,
            ReceiverId::new(account(1), &origin("http://a.example/two"))
        );
        assert_ne!(receiver, ReceiverId::new(account(2), &here));
        assert_ne!(
            receiver,
            ReceiverId::new(account(1), &origin("https://a.example/one"))
        );
    }

    /// The hash must never change: it is stored in the queue.
    #[test]
    fn the_number_is_stable() {
        let receiver = ReceiverId::new(account(7), &origin("https://example.com/dlr"));
        assert_eq!(receiver.as_i64(), STABLE);
        assert_eq!(ReceiverId::from_i64(STABLE), Some(receiver));
        assert_eq!(ReceiverId::from_i64(0), None);
        assert_eq!(ReceiverId::from_i64(-STABLE), None);
    }

    #[test]
    fn smpp_users_are_told_apart_by_their_number() {
        let receiver = |account_id, system_id| {
            let origin = Origin::from_url(&CallbackUrl::smpp(system_id, "1/x"));
            ReceiverId::new(account(account_id), &origin)
        };
        let acme = receiver(1, "acme");
        assert!(acme.is_smpp() && ReceiverId::from_i64(acme.as_i64()) == Some(acme));
        for other in [receiver(2, "acme"), receiver(1, "Acme"), receiver(1, "@1")] {
            assert_ne!(acme, other);
        }
        let host = ReceiverId::new(account(1), &origin("http://a.example/"));
        assert!(!host.is_smpp());
    }

    const STABLE: i64 = 771_645_770_468_250_710;
}
