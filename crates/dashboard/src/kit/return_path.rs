//! Where to go after signing in.

use url::form_urlencoded;

/// Longer paths than any of ours.
const MAX_BYTES: usize = 256;
/// Where whoever did not come from anywhere goes.
const HOME: &str = "/dashboard";
/// What there is to come back to.
const PLACES: [&str; 2] = ["/dashboard/", "/oauth/consent/"];

/// A path of this very service. Whatever else a request names, home takes its place: nobody is sent to another site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReturnPath(String);

impl ReturnPath {
    /// Reads what a request names.
    pub(crate) fn parse(given: Option<&str>) -> Self {
        let path = given.filter(|path| is_ours(path)).unwrap_or(HOME);
        Self(path.to_owned())
    }

    /// Reads what a query names as `next`.
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        let query = query.unwrap_or_default();
        let next = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "next");
        Self::parse(next.as_ref().map(|(_, path)| path.as_ref()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// What a form carries on; nothing when it is home anyway.
    pub(crate) fn to_carry(&self) -> Option<&str> {
        (self.0 != HOME).then_some(self.as_str())
    }

    /// The sign-in page that leads back here. The letters of a path of ours need no escape.
    pub(crate) fn sign_in_address(&self) -> String {
        match self.to_carry() {
            Some(path) => format!("/dashboard/sign-in?next={path}"),
            None => "/dashboard/sign-in".to_owned(),
        }
    }
}

/// Only plain letters, so that no reader of the path can see anything else in it than we do.
fn is_ours(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
    path.len() <= MAX_BYTES
        && PLACES.iter().any(|place| path.starts_with(place))
        && path.bytes().all(plain)
        && !path.contains("//")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_our_own_pages_are_gone_to() {
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
            prop_assert!(here == HOME || PLACES.iter().any(|place| here.starts_with(place)));
        }
    }
}
