//! What a person reads whom a client sent here in vain.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use super::page::{Frame, show_bare};

#[derive(Template)]
#[template(path = "oauth_refused.html")]
struct Refused<'a> {
    frame: Frame,
    text: &'a str,
}

/// A person is told, because nobody can be sent back.
pub(crate) fn refused(status: StatusCode, text: &str) -> Response {
    let frame = Frame::plain();
    show_bare(status, &Refused { frame, text })
}
