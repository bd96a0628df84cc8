//! Style sheet, script and icon.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::RawQuery;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::access::token::TokenHash;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use requests::wrong_method;

const STYLE: &str = include_str!("../../assets/style.css");
const SCRIPT: &str = include_str!("../../assets/script.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// The address changes with the content, so browsers may cache it forever.
pub(crate) static STYLE_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("/dashboard/style.css?{}", version(STYLE)));
pub(crate) static SCRIPT_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("/dashboard/script.js?{}", version(SCRIPT)));
pub(crate) static ICON_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("/dashboard/icon.svg?{}", version(ICON)));

fn version(content: &str) -> String {
    let hash = TokenHash::from_secret(content);
    let [a, b, c, d, ..] = hash.as_bytes();
    format!("{a:02x}{b:02x}{c:02x}{d:02x}")
}

/// Routes of the assets. The dashboard and the authorization server both need them for their pages.
pub fn router() -> Router {
    Router::new()
        .route("/dashboard/style.css", get(style))
        .route("/dashboard/script.js", get(script))
        .route("/dashboard/icon.svg", get(icon))
        .method_not_allowed_fallback(wrong_method)
}

async fn style(RawQuery(asked): RawQuery) -> Response {
    serve("text/css; charset=utf-8", STYLE, asked)
}

async fn script(RawQuery(asked): RawQuery) -> Response {
    serve("text/javascript; charset=utf-8", SCRIPT, asked)
}

async fn icon(RawQuery(asked): RawQuery) -> Response {
    serve("image/svg+xml", ICON, asked)
}

/// While nodes of two versions run, a browser may ask this node for the other version's file; that must not be cached.
fn serve(kind: &'static str, content: &'static str, asked: Option<String>) -> Response {
    let is_this = asked.is_some_and(|asked| asked == version(content));
    let cache = if is_this {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, cache),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, content).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A selector that is defined twice gets a mix of both rules.
    #[test]
    fn no_selector_of_the_style_sheet_is_defined_twice() {
        let mut depth = 0;
        let mut seen = HashSet::new();
        for (end, sign) in STYLE.match_indices(['{', '}']) {
            if sign == "}" {
                depth -= 1;
                continue;
            }
            depth += 1;
            let before = &STYLE[..end];
            let start = before.rfind(['{', '}', '/']).map_or(0, |at| at + 1);
            let selector = before[start..].trim();
            // Rules inside a media query repeat selectors on purpose.
            if depth == 1 && !selector.starts_with('@') {
                assert!(seen.insert(selector), "{selector} appears twice");
            }
        }
        assert!(seen.len() > 50, "the rules were not found: {}", seen.len());
    }
}
