//! The page to open after signing in.

use url::form_urlencoded;

/// No path of ours is longer.
const MAX_PATH_BYTES: usize = 256;
/// No filters of ours are longer.
const MAX_QUERY_BYTES: usize = 1024;
const HOME: &str = "/dashboard";
const PREFIXES: [&str; 2] = ["/dashboard/", "/oauth/consent/"];

/// A path of this service, with its query. Anything else that a request names is replaced by the home page, so that
/// nobody is redirected to another site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReturnPath(String);

impl ReturnPath {
    pub(crate) fn parse(given: Option<&str>) -> Self {
        let (path, query) = match given.and_then(|given| given.split_once('?')) {
            Some((path, query)) => (Some(path), query),
            None => (given, ""),
        };
        Self::new(path.unwrap_or_default(), query)
    }

    /// A query with unusual characters is dropped; the path alone is still of use.
    pub(crate) fn new(path: &str, query: &str) -> Self {
        if !is_ours(path) {
            return Self(HOME.to_owned());
        }
        if query.is_empty() || !is_plain_query(query) {
            return Self(path.to_owned());
        }
        Self(format!("{path}?{query}"))
    }

    /// Reads the field `next` of a query string.
    pub(crate) fn from_query(query: Option<&str>) -> Self {
        let query = query.unwrap_or_default();
        let next = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "next");
        Self::parse(next.as_ref().map(|(_, path)| path.as_ref()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value for a form; `None` for the home page.
    pub(crate) fn to_carry(&self) -> Option<&str> {
        (self.0 != HOME).then_some(self.as_str())
    }

    /// The sign-in page that leads back here.
    pub(crate) fn sign_in_address(&self) -> String {
        self.carried_by("/dashboard/sign-in")
    }

    /// The address of a page that leads here afterwards. A notice is not shown again.
    pub(crate) fn carried_by(&self, page: &str) -> String {
        let (path, query) = self.0.split_once('?').unwrap_or((&self.0, ""));
        let kept = query.split('&').filter(|field| !field.starts_with("said="));
        let query = kept.collect::<Vec<_>>().join("&");
        if query.is_empty() {
            return match path {
                HOME => page.to_owned(),
                // Valid paths need no escaping.
                path => format!("{page}?next={path}"),
            };
        }
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        format!("{page}?next={path}%3F{query}")
    }
}

/// Only plain characters, so that no browser interprets the path in another way.
fn is_ours(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
    let is_ours = path == HOME || PREFIXES.iter().any(|place| path.starts_with(place));
    path.len() <= MAX_PATH_BYTES && is_ours && path.bytes().all(plain) && !path.contains("//")
}

/// The characters that forms write, and those that people type.
fn is_plain_query(query: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~*+%=&:,@/".contains(&byte);
    query.len() <= MAX_QUERY_BYTES && query.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_our_own_pages_are_accepted() {
        for path in [
            "/oauth/consent/AbC-123_x",
            "/dashboard/password",
            "/dashboard/messages/42",
            "/dashboard/messages?to=%2B371+2&state=failed&since=2030-01-31T09:30",
            "/dashboard?days=7",
        ] {
            assert_eq!(ReturnPath::parse(Some(path)).as_str(), path);
        }
        for path in [
            "",
            "/",
            "/dashboard",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example/dashboard/",
            "https:/dashboard/",
            "javascript:alert(1)",
            "/dashboard//evil.example",
            "/dashboard/../../evil",
            "/dashboard/%2F%2Fevil.example",
            "/dashboard/\r\nLocation: https://evil.example",
            "//evil.example?/dashboard/",
            "/sms?next=/dashboard/",
            "/dashboard/#x",
            "/dashboard.evil.example",
            "/oauth/consent",
            "/oauth/authorize?client_id=x",
            "/sms",
            " /dashboard/x",
            "/dashboard/é",
        ] {
            assert_eq!(ReturnPath::parse(Some(path)).as_str(), HOME, "{path:?}");
        }
        let long = format!("/dashboard/{}", "a".repeat(MAX_PATH_BYTES));
        assert_eq!(ReturnPath::parse(Some(&long)).as_str(), HOME);
        assert_eq!(ReturnPath::parse(None).as_str(), HOME);
    }

    #[test]
    fn an_unusual_query_is_dropped() {
        let long = "a".repeat(MAX_QUERY_BYTES + 1);
        for query in [
            "",
            "a=\r\nLocation: x",
            "a=#x",
            "a=<b>",
            "a=é",
            "a b",
            "?",
            &long,
        ] {
            let given = format!("/dashboard/messages?{query}");
            let parsed = ReturnPath::parse(Some(&given));
            assert_eq!(parsed.as_str(), "/dashboard/messages", "{query:?}");
        }
    }

    #[test]
    fn a_notice_is_not_carried() {
        for (path, expected) in [
            ("/dashboard?said=password.0f", "/dashboard/sign-in"),
            (
                "/dashboard/messages?to=1&said=x.0f",
                "/dashboard/sign-in?next=/dashboard/messages%3Fto%3D1",
            ),
        ] {
            assert_eq!(ReturnPath::parse(Some(path)).sign_in_address(), expected);
        }
    }

    #[test]
    fn the_sign_in_page_carries_the_path() {
        for (path, expected) in [
            ("/dashboard", "/dashboard/sign-in"),
            ("/dashboard/send", "/dashboard/sign-in?next=/dashboard/send"),
            (
                "/dashboard/messages?to=%2B371&state=sent",
                "/dashboard/sign-in?next=/dashboard/messages%3Fto%3D%252B371%26state%3Dsent",
            ),
        ] {
            let address = ReturnPath::parse(Some(path)).sign_in_address();
            assert_eq!(address, expected);
            let query = address.split_once('?').map(|(_, query)| query);
            assert_eq!(ReturnPath::from_query(query).as_str(), path);
        }
    }

    proptest! {
        #[test]
        fn it_never_leaves_this_origin(path in "\\PC{0,40}|(/dashboard/|/oauth/consent/)[?]?\\PC{0,40}") {
            let base = url::Url::parse("https://here.example/dashboard/sign-in").expect("an address");
            let parsed = ReturnPath::parse(Some(&path));
            let target = base.join(parsed.as_str()).expect("an address");
            prop_assert_eq!(target.origin(), base.origin());
            let here = target.path();
            prop_assert!(here == HOME || PREFIXES.iter().any(|place| here.starts_with(place)));
        }
    }
}
