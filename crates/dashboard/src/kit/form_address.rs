//! Addresses that only take forms, opened as pages.

use axum::response::{IntoResponse, Redirect, Response};
use http::header::ACCEPT;
use http::{HeaderMap, Method, Uri};
use requests::wrong_method;

use crate::kit::return_path::ReturnPath;

/// Answers a method that an address of the dashboard does not take. A browser that opens the address of a form, by
/// reloading or after signing in again, is redirected to the page above it. Programs get the usual error.
pub(crate) async fn wrong_method_of_page(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let reads = matches!(method, Method::GET | Method::HEAD);
    if reads && accepts_pages(&headers) {
        return Redirect::to(page_above(uri.path()).as_str()).into_response();
    }
    wrong_method(method, uri).await
}

fn accepts_pages(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter();
    values.any(|value| value.to_str().is_ok_and(|text| text.contains("text/html")))
}

fn page_above(path: &str) -> ReturnPath {
    let above = path.rsplit_once('/').map(|(above, _)| above);
    ReturnPath::parse(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_above_is_one_of_ours() {
        for (path, expected) in [
            ("/dashboard/sign-out", "/dashboard"),
            ("/dashboard/opt-outs/remove", "/dashboard/opt-outs"),
            ("/dashboard/senders/7/pin", "/dashboard/senders/7"),
            ("/dashboard/senders/%2F%2Fevil.example/pin", "/dashboard"),
            ("/other/page", "/dashboard"),
        ] {
            assert_eq!(page_above(path).as_str(), expected);
        }
    }
}
