//! The page to open after signing in.

use url::form_urlencoded;

/// No path of ours is longer.
const MAX_BYTES: usize = 256;
const HOME: &str = "/dashboard";
const PREFIXES: [&str; 2] = ["/dashboard/", "/oauth/consent/"];

/// A path of this service. Anything else that a request names is replaced by the home page, so that nobody is
/// redirected to another site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReturnPath(String);

impl ReturnPath {
    pub(crate) fn parse(given: Option<&str>) -> Self {
        let path = given.filter(|path| is_ours(path)).unwrap_or(HOME);
        Self(path.to_owned())
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

    /// The sign-in page that leads back here. Valid paths need no escaping.
    pub(crate) fn sign_in_address(&self) -> String {
        match self.to_carry() {
            Some(path) => format!("/dashboard/sign-in?next={path}"),
            None => "/dashboard/sign-in".to_owned(),
        }
    }
}

/// Only plain characters, so that no browser interprets the path in another way.
fn is_ours(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
    path.len() <= MAX_BYTES
        && PREFIXES.iter().any(|place| path.starts_with(place))
        && path.bytes().all(plain)
        && !path.contains("//")
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
            "/dashboard/?next=//evil.example",
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
        let long = format!("/dashboard/{}", "a".repeat(MAX_BYTES));
        assert_eq!(ReturnPath::parse(Some(&long)).as_str(), HOME);
        assert_eq!(ReturnPath::parse(None).as_str(), HOME);
    }

    proptest! {
        #[test]
        fn it_never_leaves_this_origin(path in "\\PC{0,40}|(/dashboard/|/oauth/consent/)\\PC{0,40}") {
            let base = url::Url::parse("https://here.example/dashboard/sign-in").expect("an address");
            let parsed = ReturnPath::parse(Some(&path));
            let target = base.join(parsed.as_str()).expect("an address");
            prop_assert_eq!(target.origin(), base.origin());
            let here = target.path();
            prop_assert!(here == HOME || PREFIXES.iter().any(|place| here.starts_with(place)));
        }
    }
}
