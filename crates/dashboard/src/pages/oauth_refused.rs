//! The page for a person whom an AI client sent here with a request that is refused.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use crate::kit::page::{Frame, show_bare};

#[derive(Template)]
#[template(path = "oauth_refused.html")]
struct Refused<'a> {
    frame: Frame,
    text: &'a str,
}

/// Tells a person why the request of their client is refused. It is not safe to send them back to the client.
pub fn oauth_refused(status: StatusCode, text: &str) -> Response {
    let frame = Frame::plain();
    show_bare(status, &Refused { frame, text })
}
