//! The addresses that a client is sent back to.

use url::{Host, Url};

use crate::quoted::Quoted;

pub const MAX_REDIRECT_BYTES: usize = 1024;

/// Schemes of well-known desktop programs. Other programs need a scheme with a dot, after a domain name of their own
/// (RFC 8252, section 7.1), so that it starts no other program.
const APP_SCHEMES: [&str; 12] = [
    "chatgpt",
    "claude",
    "cursor",
    "goose",
    "jetbrains",
    "kiro",
    "raycast",
    "vscode",
    "vscode-insiders",
    "warp",
    "windsurf",
    "zed",
];

/// The names of the local machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// An address that a client may be sent back to with a code: `https`, `http` on the local machine, or a program's own
/// scheme. It must be written in the normal form of the URL standard: no user part, no fragment, no dots in the path,
/// no capitals in the host. So equal addresses are equal texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectUri(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectUriError {
    /// Not a URL, or not in normal form.
    #[error("{} is not an address in its plain form: absolute, without '..', a user part or capitals in the host", Quoted(.0))]
    Form(String),
    /// It has a fragment, which would hide the code.
    #[error("{} has a fragment, which no redirect address may have", Quoted(.0))]
    Fragment(String),
    #[error("a redirect address has at most 1024 bytes")]
    TooLong,
    /// Addresses are compared as they are, so a client that registers a pattern would never be sent anywhere.
    #[error("{} has a wildcard; register each address", Quoted(.0))]
    Wildcard(String),
    /// The scheme could start any program, or would send the code unencrypted.
    #[error("{} is neither https, nor http on 127.0.0.1, [::1] or localhost, nor a program's own scheme such as com.example.app:/", Quoted(.0))]
    Scheme(String),
}

impl RedirectUri {
    pub fn parse(text: &str) -> Result<Self, RedirectUriError> {
        if text.len() > MAX_REDIRECT_BYTES {
            return Err(RedirectUriError::TooLong);
        }
        let form = || RedirectUriError::Form(text.to_owned());
        if !text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
            return Err(form());
        }
        if text.contains('#') {
            return Err(RedirectUriError::Fragment(text.to_owned()));
        }
        let url = Url::parse(text).map_err(|_| form())?;
        let is_plain = url.as_str() == text || url.as_str().strip_suffix('/') == Some(text);
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !is_plain || has_user {
            return Err(form());
        }
        if is_allowed(&url) {
            Ok(Self(text.to_owned()))
        } else {
            Err(RedirectUriError::Scheme(text.to_owned()))
        }
    }

    /// Parses an address that a client registers.
    pub fn register(text: &str) -> Result<Self, RedirectUriError> {
        if text.contains('*') {
            return Err(RedirectUriError::Wildcard(text.to_owned()));
        }
        Self::parse(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it leads to a program on the user's own machine. Any program there could claim to be it.
    pub fn is_loopback(&self) -> bool {
        self.loopback_parts().is_some()
    }

    /// Whether a client that registered this address may be sent to `asked`. They must be equal; only a program on the
    /// user's machine may use another port each time (RFC 8252, section 7.3).
    pub fn permits(&self, asked: &Self) -> bool {
        let same_but_port = || Some(self.loopback_parts()? == asked.loopback_parts()?);
        self == asked || same_but_port().unwrap_or(false)
    }

    /// The address with these query parameters appended.
    pub fn with<'a>(&self, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Url {
        let mut url = Url::parse(&self.0).expect("it was parsed before");
        url.query_pairs_mut().extend_pairs(parameters);
        url
    }

    /// The host and everything after the port, if the host is the local machine.
    fn loopback_parts(&self) -> Option<(&str, &str)> {
        let authority = self.0.strip_prefix("http://")?;
        let host = LOOPBACK
            .into_iter()
            .find(|host| authority.starts_with(host))?;
        let rest = &authority[host.len()..];
        let Some(port_and_path) = rest.strip_prefix(':') else {
            return Some((host, rest));
        };
        let digits = port_and_path.bytes().take_while(u8::is_ascii_digit).count();
        Some((host, &port_and_path[digits..]))
    }
}

fn is_allowed(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => match url.host() {
            Some(Host::Ipv4(ip)) => ip == std::net::Ipv4Addr::LOCALHOST,
            Some(Host::Ipv6(ip)) => ip == std::net::Ipv6Addr::LOCALHOST,
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        },
        // `tel:1`, `mailto:x` and similar have no path.
        scheme => {
            !url.cannot_be_a_base() && (scheme.contains('.') || APP_SCHEMES.contains(&scheme))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_plain_addresses_are_registered() {
        for (text, ok) in [
            ("https://example.com/callback", true),
            ("https://example.com", true),
            ("https://example.com:8443/cb?a=b", true),
            ("https://example.com/@me", true),
            ("http://127.0.0.1/callback", true),
            ("http://127.0.0.1:33418/", true),
            ("http://[::1]:5000/cb", true),
            ("http://localhost:8080/cb", true),
            ("com.example.app:/oauth", true),
            ("cursor://anysphere.cursor-mcp/oauth/callback", true),
            ("", false),
            ("/callback", false),
            ("//example.com/cb", false),
            ("example.com/cb", false),
            ("https://", false),
            ("https:example.com/cb", false),
            ("https:///example.com/cb", false),
            ("https://EXAMPLE.com/cb", false),
            ("HTTPS://example.com/cb", false),
            ("https://example.com:443/cb", false),
            ("https://example.com/a/../cb", false),
            ("https://example.com/./cb", false),
            ("https://example.com/%2e%2e/cb", false),
            ("https://example.com\\@evil.example/cb", false),
            ("https://user@example.com/cb", false),
            ("https://user:pw@example.com/cb", false),
            ("https://@example.com/cb", false),
            ("https://example.com@evil.example/cb", false),
            ("https://example.com/cb#", false),
            ("https://example.com/cb#x", false),
            ("https://example.com/c b", false),
            ("https://example.com/cb\n", false),
            (" https://example.com/cb", false),
            ("https://exämple.com/cb", false),
            ("http://example.com/cb", false),
            ("http://127.0.0.2/cb", false),
            ("http://127.1/cb", false),
            ("http://2130706433/cb", false),
            ("http://0.0.0.0/cb", false),
            ("http://[::]/cb", false),
            ("http://[::ffff:127.0.0.1]/cb", false),
            ("http://localhost.evil.example/cb", false),
            ("http://app.localhost/cb", false),
            ("http://localhost./cb", false),
            ("javascript:alert(1)", false),
            ("javascript://example.com/%0aalert(1)", false),
            ("data:text/html,x", false),
            ("file:///etc/passwd", false),
            ("ms-msdt:/id", false),
            ("myapp://cb", false),
            ("com.example.app:opaque", false),
            ("urn:ietf:wg:oauth:2.0:oob", false),
        ] {
            assert_eq!(RedirectUri::parse(text).is_ok(), ok, "{text:?}");
        }
        let long = format!("https://example.com/{}", "a".repeat(MAX_REDIRECT_BYTES));
        assert_eq!(RedirectUri::parse(&long), Err(RedirectUriError::TooLong));
    }

    #[test]
    fn only_a_program_on_this_machine_chooses_its_port() {
        for (registered, asked, permitted) in [
            ("https://a.example/cb", "https://a.example/cb", true),
            ("https://a.example/cb", "https://a.example/cb/", false),
            ("https://a.example/cb", "https://a.example/CB", false),
            ("https://a.example/cb", "https://a.example/cb?x=1", false),
            ("https://a.example/cb", "https://a.example/cb/x", false),
            ("https://a.example/cb", "https://a.example:8443/cb", false),
            ("https://a.example/cb", "https://b.a.example/cb", false),
            ("https://a.example", "https://a.example/", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:9/cb", true),
            ("http://127.0.0.1:80/cb", "http://127.0.0.1:9/cb", false),
            ("http://127.0.0.1:8080/cb", "http://127.0.0.1/cb", true),
            ("http://[::1]:1/cb", "http://[::1]:2/cb", true),
            ("http://localhost/cb", "http://localhost:3118/cb", true),
            ("http://127.0.0.1/cb", "http://localhost:9/cb", false),
            ("http://127.0.0.1/cb", "http://[::1]:9/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:9/cb/", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:9/cb?x", false),
            ("http://127.0.0.1/cb", "https://127.0.0.1:9/cb", false),
            ("https://127.0.0.1/cb", "https://127.0.0.1:9/cb", false),
        ] {
            let [registered, asked] = [registered, asked].map(RedirectUri::parse);
            let got = registered.and_then(|registered| Ok(registered.permits(&asked?)));
            assert_eq!(got.unwrap_or(false), permitted);
        }
    }

    #[test]
    fn parameters_follow_those_of_the_address() {
        for (text, expected) in [
            (
                "https://a.example/cb",
                "https://a.example/cb?code=a%26b&state=c+d",
            ),
            (
                "https://a.example",
                "https://a.example/?code=a%26b&state=c+d",
            ),
            (
                "https://a.example/cb?x=y",
                "https://a.example/cb?x=y&code=a%26b&state=c+d",
            ),
            (
                "com.example.app:/cb",
                "com.example.app:/cb?code=a%26b&state=c+d",
            ),
        ] {
            let uri = RedirectUri::parse(text).expect(text);
            let url = uri.with([("code", "a&b"), ("state", "c d")]);
            assert_eq!(url.as_str(), expected);
        }
    }

    proptest! {
        #[test]
        fn accepted_addresses_lead_where_they_say(text in "(https?://|[a-z.]{1,9}:/)[a-z0-9.@:/?\\\\%\\[\\]-]{0,40}") {
            if let Ok(uri) = RedirectUri::parse(&text) {
                let url = Url::parse(&text).expect("parsed before");
                prop_assert!(url.username().is_empty() && url.password().is_none());
                prop_assert_eq!(uri.as_str(), text.as_str());
                prop_assert!(uri.permits(&uri));
                if url.scheme() == "http" {
                    prop_assert!(uri.is_loopback());
                }
            }
        }

        #[test]
        fn a_port_changes_nothing_but_the_port(path in "[a-z/?=]{0,12}", port in 1..=65_535_u16, other in 1..=65_535_u16) {
            let of = |port: u16| RedirectUri::parse(&format!("http://127.0.0.1:{port}/{path}"));
            if let (Ok(registered), Ok(asked)) = (of(port), of(other)) {
                prop_assert!(registered.permits(&asked));
            }
        }
    }
}
