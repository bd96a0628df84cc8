//! The frame of every page, and the answer that carries it.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use domain::person::SignedIn;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, StatusCode};

use crate::kit::assets::{ICON_ADDRESS, SCRIPT_ADDRESS, STYLE_ADDRESS};
use crate::kit::browser::form_token;
use crate::kit::navigation::{self, Section};
use crate::kit::return_path::ReturnPath;

/// No outside asset, no script but our own file, no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// The same without any script, for the pages on which people and clients are let in.
const BARE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// What a sign-out form's token is for.
pub(crate) const SIGN_OUT: &str = "sign-out";

/// What stands around a page.
pub(crate) struct Frame {
    pub(crate) style: &'static str,
    pub(crate) icon: &'static str,
    pub(crate) script: &'static str,
    pub(crate) who: Option<Who>,
    /// The account that the page is about.
    pub(crate) account: Option<String>,
    /// The ways between the pages; none on a page that stands by itself.
    pub(crate) sections: Vec<Section>,
    /// What every form behind the sign-in carries.
    pub(crate) form_token: String,
    /// What was just done, or why not.
    pub(crate) said: Option<Said>,
}

/// What a page says of the form that led to it.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) is_problem: bool,
}

/// Who is signed in, and how they sign out.
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) form_token: String,
    pub(crate) back: Option<String>,
}

impl Frame {
    /// For whoever is not signed in.
    pub(crate) fn plain() -> Self {
        Self {
            style: &STYLE_ADDRESS,
            icon: &ICON_ADDRESS,
            script: &SCRIPT_ADDRESS,
            who: None,
            account: None,
            sections: Vec::new(),
            form_token: String::new(),
            said: None,
        }
    }

    /// For whoever is. Who signs out here to be somebody else comes back to `back`.
    pub(crate) fn of(session: &str, signed_in: &SignedIn, back: &ReturnPath) -> Self {
        let name = signed_in.person().map_or_else(
            || "signed in by link".to_owned(),
            |person| person.email.to_string(),
        );
        Self {
            who: Some(Who {
                name,
                form_token: form_token(session, SIGN_OUT),
                back: back.to_carry().map(str::to_owned),
            }),
            ..Self::plain()
        }
    }

    /// The same for a page about an account.
    pub(crate) fn of_account(self, name: &str) -> Self {
        Self {
            account: Some(name.to_owned()),
            ..self
        }
    }

    /// The same with the ways between the pages.
    pub(crate) fn with_navigation(
        self,
        signed_in: &SignedIn,
        here: &str,
        form_token: String,
    ) -> Self {
        Self {
            sections: navigation::sections(signed_in, here),
            form_token,
            ..self
        }
    }

    /// The same with the news that something was done.
    pub(crate) fn saying(self, text: impl Into<String>) -> Self {
        let said = Said {
            text: text.into(),
            is_problem: false,
        };
        Self {
            said: Some(said),
            ..self
        }
    }

    /// The same with the news that something was not done, and why.
    pub(crate) fn refusing(self, text: impl Into<String>) -> Self {
        let said = Said {
            text: text.into(),
            is_problem: true,
        };
        Self {
            said: Some(said),
            ..self
        }
    }
}

/// Writes a page behind the sign-in.
pub(crate) fn show(status: StatusCode, page: &impl Template) -> Response {
    show_under(POLICY, status, page)
}

/// Writes a page that stands by itself, and so has no script.
pub(crate) fn show_bare(status: StatusCode, page: &impl Template) -> Response {
    show_under(BARE_POLICY, status, page)
}

/// The content policy of a page whose form may lead on to addresses of these schemes.
pub(crate) fn policy_with_forms_to<'a>(schemes: impl Iterator<Item = &'a str>) -> String {
    schemes.fold(BARE_POLICY.to_owned(), |policy, scheme| {
        format!("{policy} {scheme}:")
    })
}

/// Writes a page under a content policy of its own.
pub(crate) fn show_under(policy: &str, status: StatusCode, page: &impl Template) -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // One-time links must not travel on in a Referer header.
        (REFERRER_POLICY, "no-referrer"),
        // Nobody who signed out should be seen by whoever presses the back button.
        (CACHE_CONTROL, "no-store"),
    ];
    match page.render() {
        Ok(html) => (status, headers, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The same answer with a cookie.
pub(crate) fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The same answer, with the time to come again.
pub(crate) fn with_retry_after(mut response: Response, seconds: u32) -> Response {
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

#[derive(Template)]
#[template(path = "notice.html")]
struct Notice<'a> {
    frame: Frame,
    title: &'a str,
    text: &'a str,
    way_on: Option<(&'a str, &'a str)>,
}

/// A page that only says something.
pub(crate) fn notice(status: StatusCode, title: &str, text: &str) -> Response {
    notice_with(Frame::plain(), status, title, text, None)
}

/// [`notice`] in a frame, with an address to go on to and what to call it.
pub(crate) fn notice_with(
    frame: Frame,
    status: StatusCode,
    title: &str,
    text: &str,
    way_on: Option<(&str, &str)>,
) -> Response {
    let page = Notice {
        frame,
        title,
        text,
        way_on,
    };
    if page.frame.sections.is_empty() {
        show_bare(status, &page)
    } else {
        show(status, &page)
    }
}
