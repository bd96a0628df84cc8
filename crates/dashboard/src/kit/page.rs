//! The frame of every page, and the HTTP response of a page.

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
use crate::kit::format::TimedText;
use crate::kit::navigation::{self, Section};
use crate::kit::return_path::ReturnPath;

/// Only our own script and style sheet; no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// Without scripts, for sign-in and consent pages.
const BARE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// The purpose of the token in a sign-out form.
pub(crate) const SIGN_OUT: &str = "sign-out";

/// Header, navigation and flash message of a page.
pub(crate) struct Frame {
    pub(crate) style: &'static str,
    pub(crate) icon: &'static str,
    pub(crate) script: &'static str,
    pub(crate) who: Option<SignedInAs>,
    pub(crate) account: Option<String>,
    /// The navigation; empty on pages outside the menu, such as the sign-in page.
    pub(crate) sections: Vec<Section>,
    /// The token of every form after signing in.
    pub(crate) form_token: String,
    /// The result of the form that led here.
    pub(crate) flash: Option<Flash>,
    /// What is wrong at present.
    pub(crate) alerts: Vec<AlertLine>,
}

/// An alert at the top of every page.
pub(crate) struct AlertLine {
    pub(crate) text: TimedText,
    /// What to do about it.
    pub(crate) advice: &'static str,
    /// The page that explains it.
    pub(crate) path: String,
}

/// The result of a form.
pub(crate) struct Flash {
    pub(crate) text: String,
    pub(crate) is_problem: bool,
}

pub(crate) struct SignedInAs {
    pub(crate) name: String,
    /// Not so for the operator of the first start, who has no email address yet.
    pub(crate) is_person: bool,
    pub(crate) form_token: String,
    pub(crate) back: Option<String>,
}

impl Frame {
    /// For pages before signing in.
    pub(crate) fn plain() -> Self {
        Self {
            style: &STYLE_ADDRESS,
            icon: &ICON_ADDRESS,
            script: &SCRIPT_ADDRESS,
            who: None,
            account: None,
            sections: Vec::new(),
            form_token: String::new(),
            flash: None,
            alerts: Vec::new(),
        }
    }

    /// A person who signs out and in again as somebody else comes back to `back`.
    pub(crate) fn signed_in(session: &str, signed_in: &SignedIn, back: &ReturnPath) -> Self {
        let name = signed_in.person().map_or_else(
            || "signed in by link".to_owned(),
            |person| person.email.to_string(),
        );
        Self {
            who: Some(SignedInAs {
                name,
                is_person: signed_in.person().is_some(),
                form_token: form_token(session, SIGN_OUT),
                back: back.to_carry().map(str::to_owned),
            }),
            ..Self::plain()
        }
    }

    pub(crate) fn with_account(self, name: &str) -> Self {
        Self {
            account: Some(name.to_owned()),
            ..self
        }
    }

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

    /// Whether the navigation has the pages for operators.
    pub(crate) fn is_for_operator(&self) -> bool {
        self.sections
            .iter()
            .any(|section| section.title == navigation::OPERATOR_TITLE)
    }

    pub(crate) fn with_alerts(self, alerts: Vec<AlertLine>) -> Self {
        Self { alerts, ..self }
    }

    /// Reports that something was done.
    pub(crate) fn with_success(self, text: impl Into<String>) -> Self {
        let flash = Flash {
            text: text.into(),
            is_problem: false,
        };
        Self {
            flash: Some(flash),
            ..self
        }
    }

    /// Reports why something was not done.
    pub(crate) fn with_problem(self, text: impl Into<String>) -> Self {
        let flash = Flash {
            text: text.into(),
            is_problem: true,
        };
        Self {
            flash: Some(flash),
            ..self
        }
    }
}

/// Responds with a page that needs the script.
pub(crate) fn show(status: StatusCode, page: &impl Template) -> Response {
    show_under(POLICY, status, page)
}

/// Responds with a page without a script.
pub(crate) fn show_bare(status: StatusCode, page: &impl Template) -> Response {
    show_under(BARE_POLICY, status, page)
}

/// The content security policy of a page whose form may redirect to these schemes.
pub(crate) fn policy_with_forms_to<'a>(schemes: impl Iterator<Item = &'a str>) -> String {
    schemes.fold(BARE_POLICY.to_owned(), |policy, scheme| {
        format!("{policy} {scheme}:")
    })
}

/// Responds with a page under its own content security policy.
pub(crate) fn show_under(policy: &str, status: StatusCode, page: &impl Template) -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // One-time links must not leak in a Referer header.
        (REFERRER_POLICY, "no-referrer"),
        // After signing out, the back button must not show pages.
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

pub(crate) fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

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
    next_link: Option<(&'a str, &'a str)>,
}

/// A page with only a title and a text.
pub(crate) fn notice(status: StatusCode, title: &str, text: &str) -> Response {
    notice_with(Frame::plain(), status, title, text, None)
}

/// [`notice`] in a frame, with an optional link: address and label.
pub(crate) fn notice_with(
    frame: Frame,
    status: StatusCode,
    title: &str,
    text: &str,
    next_link: Option<(&str, &str)>,
) -> Response {
    let page = Notice {
        frame,
        title,
        text,
        next_link,
    };
    if page.frame.sections.is_empty() {
        show_bare(status, &page)
    } else {
        show(status, &page)
    }
}
