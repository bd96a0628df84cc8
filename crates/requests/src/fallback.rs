//! Answers to requests that no route takes.

use axum::Router;
use axum::response::{IntoResponse, Response};
use domain::quoted::Quoted;
use http::{Method, StatusCode, Uri};

use crate::Problem;

/// Answers a method that the address does not take. axum adds the `Allow` header.
pub async fn wrong_method(method: Method, uri: Uri) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let path = Quoted(uri.path());
    Problem::method_not_allowed(format!(
        "{method} is not allowed on {path}; the header Allow says what is."
    ))
    .into_response()
}

/// Adds answers to unknown addresses, and to wrong methods on routes that have none of their own.
pub fn with_unknown_addresses(router: Router) -> Router {
    router
        .fallback(unknown_address)
        .method_not_allowed_fallback(wrong_method)
}

async fn unknown_address(uri: Uri) -> Problem {
    let path = Quoted(uri.path());
    Problem::not_found(format!(
        "There is nothing at {path}; /docs lists the addresses there are."
    ))
}
