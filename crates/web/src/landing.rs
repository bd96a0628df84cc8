//! `/`: leads a browser to the dashboard and tells a program what is where.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::header::{ACCEPT, VARY};
use http::{HeaderMap, HeaderValue};
use requests::wrong_method;
use serde::Serialize;

/// The addresses of the service. `None`: this node neither serves it nor knows where it is.
#[derive(Debug, Default, Serialize)]
pub struct Landing {
    pub name: &'static str,
    pub version: &'static str,
    /// The page that describes the API.
    pub docs: Option<String>,
    pub openapi: Option<String>,
    pub dashboard: Option<String>,
    pub mcp: Option<String>,
    /// Where browsers are sent: a path on this node, or the whole URL of a dashboard elsewhere.
    #[serde(skip)]
    pub redirect: Option<String>,
}

impl Landing {
    pub fn router(self) -> Router {
        Router::new()
            .route("/", get(answer))
            .with_state(Arc::new(self))
            .method_not_allowed_fallback(wrong_method)
    }
}

async fn answer(State(landing): State<Arc<Landing>>, headers: HeaderMap) -> Response {
    let mut response = match &landing.redirect {
        Some(dashboard) if wants_html(&headers) => Redirect::to(dashboard).into_response(),
        _ => Json(&*landing).into_response(),
    };
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(VARY, vary);
    response
}

/// Whether `Accept` names HTML, as browsers do. Programs that accept anything get JSON.
fn wants_html(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT).into_iter();
    let mut ranges = lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','));
    ranges.any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_html = parts
            .next()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"));
        is_html && !parts.any(is_zero_quality)
    })
}

fn is_zero_quality(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    name.trim_end().eq_ignore_ascii_case("q")
        && value
            .trim_start()
            .parse::<f32>()
            .is_ok_and(|quality| quality <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_html_is_for_browsers() {
        for (accept, expected) in [
            (&[][..], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&["text/*"], false),
            (&["text/html"], true),
            (&["TEXT/HTML; charset=utf-8"], true),
            (
                &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
                true,
            ),
            (&["application/json", "text/html;q=0.1"], true),
            (&["application/json, text/html;q=0"], false),
            (&["text/html; Q=0.000"], false),
            (&["text/html5"], false),
            (&["\u{e4}"], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, value.parse().expect("a value"));
            }
            assert_eq!(wants_html(&headers), expected, "{accept:?}");
        }
    }
}
