//! Where the answer of a consent goes.

use url::Url;

pub(super) struct Target {
    /// Host and port, or the scheme of a program.
    pub(super) host: String,
    /// Whether it is a program on the person's own machine; any other program there could claim its address.
    pub(super) is_program: bool,
}

impl Target {
    pub(super) fn new(redirect_uri: &str, is_loopback: bool) -> Self {
        let url = Url::parse(redirect_uri).ok();
        let host = url.as_ref().map_or_else(String::new, host);
        let is_site = url.is_some_and(|url| url.scheme() == "https");
        Self {
            host,
            is_program: is_loopback || !is_site,
        }
    }
}

/// International names are shown encoded (`xn--…`), because some letters look like others.
fn host(url: &Url) -> String {
    if !matches!(url.scheme(), "https" | "http") {
        return format!("{}:", url.scheme());
    }
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_by_its_host() {
        for (address, is_loopback, place, is_program) in [
            (
                "https://example.com/callback?x=y",
                false,
                "example.com",
                false,
            ),
            (
                "https://example.com:8443/cb",
                false,
                "example.com:8443",
                false,
            ),
            (
                "https://ex\u{430}mple.com/cb",
                false,
                "xn--exmple-4nf.com",
                false,
            ),
            (
                "https://example.com/@trusted.example",
                false,
                "example.com",
                false,
            ),
            ("http://127.0.0.1:33418/", true, "127.0.0.1:33418", true),
            ("http://[::1]:5000/cb", true, "[::1]:5000", true),
            ("http://localhost/cb", true, "localhost", true),
            ("cursor://anysphere.cursor-mcp/cb", false, "cursor:", true),
            ("com.example.app:/oauth", false, "com.example.app:", true),
        ] {
            let target = Target::new(address, is_loopback);
            assert_eq!(
                (target.host.as_str(), target.is_program),
                (place, is_program),
                "{address}"
            );
        }
    }
}
