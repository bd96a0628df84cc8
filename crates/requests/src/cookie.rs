//! Reading cookies.

use http::HeaderMap;
use http::header::COOKIE;

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        let line = "theme=dark; switchboard-form=f; switchboard=s; xswitchboard=x";
        headers.insert(COOKIE, HeaderValue::from_static(line));
        for (name, expected) in [
            ("switchboard", Some("s")),
            ("switchboard-form", Some("f")),
            ("board", None),
        ] {
            assert_eq!(cookie(&headers, name), expected, "{name}");
        }
    }
}
