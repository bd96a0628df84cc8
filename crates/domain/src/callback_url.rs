//! Where delivery reports and other callbacks go: URLs that callers give us, and the SMPP sessions of a user.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use url::Url;

use crate::ids::AccountId;
use crate::quoted::Quoted;

pub const MAX_URL_BYTES: usize = 2048;
/// The scheme of callbacks to SMPP sessions.
const SMPP: &str = "smpp:";

/// An http or https URL without user name and password, as the caller wrote it; or the SMPP sessions of a user, which
/// only the service itself names.
///
/// Only its form is checked here; whether its host may be called is checked when connecting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackUrl(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallbackUrlError {
    #[error("{} is not a URL ({reason}); give an http or https address", Quoted(.value))]
    Malformed { value: String, reason: String },
    #[error("{} has the scheme '{scheme}'; only http and https are called", Quoted(.value))]
    Scheme { value: String, scheme: String },
    /// A user name or password before the host. The error does not repeat the value, because it contains a secret.
    #[error("the URL holds a user name or password before the host; leave it out")]
    UserPart,
    #[error("the URL has {bytes} bytes; at most 2048 are taken")]
    TooLong { bytes: usize },
}

impl CallbackUrl {
    pub fn parse(value: &str) -> Result<Self, CallbackUrlError> {
        if value.len() > MAX_URL_BYTES {
            return Err(CallbackUrlError::TooLong { bytes: value.len() });
        }
        if value.chars().any(char::is_control) {
            // The parser drops some of them, and the URL that is called would differ from the one that the caller sees.
            return Err(CallbackUrlError::Malformed {
                value: value.to_owned(),
                reason: "it holds control characters".to_owned(),
            });
        }
        if is_plain(value) {
            return Ok(Self(value.to_owned()));
        }
        let url = Url::parse(value).map_err(|error| CallbackUrlError::Malformed {
            value: value.to_owned(),
            reason: error.to_string(),
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(CallbackUrlError::UserPart);
        }
        match url.scheme() {
            "http" | "https" => Ok(Self(value.to_owned())),
            scheme => Err(CallbackUrlError::Scheme {
                value: value.to_owned(),
                scheme: scheme.to_owned(),
            }),
        }
    }

    /// The sessions of an SMPP user instead of a URL: `smpp:SYSTEM_ID/DETAILS`. The details are for the session.
    pub fn smpp(system_id: &str, details: &str) -> Self {
        let mut url = String::with_capacity(SMPP.len() + system_id.len() + details.len() + 1);
        url.push_str(SMPP);
        for byte in system_id.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
                url.push(char::from(byte));
            } else {
                write!(url, "%{byte:02X}").expect("a string takes everything");
            }
        }
        if !details.is_empty() {
            url.push('/');
            url.push_str(details);
        }
        Self(url)
    }

    /// The sessions of all SMPP users of an account, for messages from handsets. No system ID is written like this.
    pub fn smpp_account(account: AccountId) -> Self {
        Self(format!("{SMPP}@{}/inbound", account.get()))
    }

    /// Reads what is stored: besides URLs, the sessions of an SMPP user.
    pub fn parse_stored(value: &str) -> Result<Self, CallbackUrlError> {
        if value.starts_with(SMPP) && value.len() <= MAX_URL_BYTES {
            return Ok(Self(value.to_owned()));
        }
        Self::parse(value)
    }

    /// Whether this names the sessions of an SMPP user.
    pub fn is_smpp(&self) -> bool {
        self.0.starts_with(SMPP)
    }

    /// What [`Self::smpp`] was given for the session.
    pub fn smpp_details(&self) -> Option<&str> {
        let rest = self.0.strip_prefix(SMPP)?;
        Some(rest.split_once('/').map_or("", |(_, details)| details))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a URL is certainly valid, by its form: most are, and the parser takes as long as the rest of a request's checks.
fn is_plain(value: &str) -> bool {
    let http = value.strip_prefix("http://");
    let Some(rest) = http.or_else(|| value.strip_prefix("https://")) else {
        return false;
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (host, port) = authority.split_once(':').unwrap_or((authority, "0"));
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        && port.parse::<u16>().is_ok()
        && (host.parse::<Ipv4Addr>().is_ok() || is_plain_name(host))
}

/// Whether this is certainly a host name. Names in other scripts (`xn--`) and numbers, which may be addresses, need the
/// parser.
fn is_plain_name(host: &str) -> bool {
    let is_plain_label = |label: &str| {
        let is_plain_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(is_plain_byte)
            && !label.contains("--")
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.len() <= 253
        && host.split('.').all(is_plain_label)
        && last.starts_with(|first: char| first.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_plain_web_addresses_are_accepted() {
        for (value, reason) in [
            ("https://example.com/dlr?id=1", None),
            ("http://127.0.0.1:9000", None),
            ("http://[::1]/x", None),
            ("example.com/dlr", Some("is not a URL")),
            ("", Some("is not a URL")),
            ("http://", Some("is not a URL")),
            ("http://example.com/\n", Some("control characters")),
            ("http://exa\tmple.com/", Some("control characters")),
            ("ftp://example.com/", Some("scheme 'ftp'")),
            ("javascript:alert(1)", Some("scheme 'javascript'")),
            ("http://user:secret@example.com/", Some("leave it out")),
            ("http://user@example.com/", Some("leave it out")),
            (
                &format!("http://example.com/{}", "a".repeat(2048)),
                Some("2067 bytes"),
            ),
        ] {
            let result = CallbackUrl::parse(value)
                .err()
                .map(|error| error.to_string());
            match (result, reason) {
                (None, None) => {}
                (Some(message), Some(reason)) => {
                    assert!(message.contains(reason), "{value:?}: {message}");
                    assert!(!message.contains("secret"), "{message}");
                }
                (got, wanted) => panic!("{value:?}: got {got:?}, wanted {wanted:?}"),
            }
        }
    }

    #[test]
    fn callers_cannot_name_smpp_sessions() {
        assert!(CallbackUrl::parse("smpp:acme").is_err());
        let sessions = CallbackUrl::smpp("ac/me", "1/2");
        assert_eq!(sessions.as_str(), "smpp:ac%2Fme/1/2");
        assert_eq!(
            CallbackUrl::parse_stored(sessions.as_str()),
            Ok(sessions.clone())
        );
        assert!(sessions.is_smpp() && sessions.smpp_details() == Some("1/2"));
        let url = CallbackUrl::parse_stored("https://a.example/").expect("a URL");
        assert!(!url.is_smpp() && url.smpp_details().is_none());
    }

    #[test]
    fn plain_urls_need_no_parser() {
        for (value, expected) in [
            ("https://hooks.example.com/dlr?id=1", true),
            ("http://127.0.0.1:9000", true),
            ("http://a-b.example:65535?x", true),
            ("http://localhost/", true),
            ("http://[::1]/", false),
            ("http://xn--e1afmkfd.example/", false),
            ("http://1.2.3/", false),
            ("http://example.1/", false),
            ("http://a..b/", false),
            ("http://user@example.com/", false),
            ("http://example.com:/", false),
            ("http://example.com:65536/", false),
            ("http://example.com:+1/", false),
            ("HTTP://example.com/", false),
            ("http:///example.com/", false),
        ] {
            assert_eq!(is_plain(value), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn plain_urls_are_valid(
            value in "https?://[a-z0-9.:@%_-]{1,16}(:[0-9]{0,6})?([/?#\\\\]\\PC{0,20})?"
        ) {
            if is_plain(&value) {
                let url = Url::parse(&value).expect("valid");
                prop_assert!(url.username().is_empty() && url.password().is_none());
                let authority = value.split("//").nth(1).expect("a host");
                let host = authority.split([':', '/', '?', '#', '\\']).next().expect("a host");
                prop_assert_eq!(url.host_str(), Some(host));
            }
        }

        #[test]
        fn parsing_never_panics(value in "\\PC{0,60}|https?://\\PC{0,40}") {
            if let Ok(url) = CallbackUrl::parse(&value) {
                prop_assert_eq!(url.as_str(), value.as_str());
            }
        }
    }
}
