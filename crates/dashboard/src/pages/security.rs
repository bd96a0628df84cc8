//! Somebody's own ways in: password, second factor, and where they are signed in.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::Person;
use domain::access::token::TokenHash;
use domain::person::{MIN_PASSWORD_CHARS, Password, RecoveryCode, SessionRecord};
use domain::ports::SecondFactor;
use engine::identity::people::OwnError;
use http::StatusCode;

use super::password::{chosen, disconnects};
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page, with_cookie};
use crate::kit::qr;
use crate::kit::return_path::ReturnPath;
use crate::kit::session::{Posted, Visitor};

const PATH: &str = "/dashboard/settings/security";

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    // Each can be opened, too: whoever reloads after a form, or signs in again, finds the page.
    Router::new()
        .route(PATH, get(show))
        .route(
            "/dashboard/settings/security/password",
            get(show).post(change_password),
        )
        .route(
            "/dashboard/settings/security/second-factor",
            get(show).post(change_second_factor),
        )
        .route(
            "/dashboard/settings/security/sessions",
            get(show).post(end_sessions),
        )
}

#[derive(Template)]
#[template(path = "security.html")]
struct SecurityPage<'a> {
    frame: Frame,
    email: &'a str,
    min_chars: usize,
    problems: Problems,
    factor: Factor,
    new_codes: Vec<String>,
    sessions: Vec<SessionRow>,
}

/// What is wrong with each field.
#[derive(Default)]
struct Problems {
    old: Option<String>,
    new: Option<String>,
    repeated: Option<String>,
    code: Option<String>,
    proof: Option<String>,
}

impl Problems {
    fn status(&self) -> StatusCode {
        let all = [
            &self.old,
            &self.new,
            &self.repeated,
            &self.code,
            &self.proof,
        ];
        if all.into_iter().all(Option::is_none) {
            StatusCode::OK
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    }
}

/// The second factor, as the page shows it.
enum Factor {
    Off,
    Offered {
        letters: String,
        address: String,
        picture: Option<qr::Picture>,
    },
    On {
        codes_left: u32,
    },
}

impl Factor {
    fn of(factor: &SecondFactor, person: &Person) -> Self {
        match (&factor.active, &factor.offered) {
            (Some(_), _) => Self::On {
                codes_left: factor.codes_left,
            },
            (None, None) => Self::Off,
            (None, Some(secret)) => {
                let address = secret.address(&person.email);
                Self::Offered {
                    letters: secret.in_letters(),
                    picture: qr::Picture::of(&address),
                    address,
                }
            }
        }
    }
}

struct SessionRow {
    name: String,
    browser: String,
    address: String,
    opened: Moment,
    seen: Moment,
    is_this: bool,
}

impl SessionRow {
    fn of(session: &SessionRecord, this: &TokenHash) -> Self {
        let address = session.device.address;
        Self {
            name: session.name(),
            browser: match session.device.browser.as_str() {
                "" => "Unknown browser".to_owned(),
                words => words.to_owned(),
            },
            address: address.map_or_else(|| "unknown".to_owned(), |address| address.to_string()),
            opened: session.opened_at.into(),
            seen: session.seen_at.into(),
            is_this: session.hash == *this,
        }
    }
}

/// Who it is. Whoever came by the link of the first start says so first.
fn person(visitor: &Visitor) -> Result<&Person, Failure> {
    let person = visitor.signed_in.person();
    person.ok_or_else(|| Failure::Elsewhere(Redirect::to("/dashboard/password")))
}

/// The page, with what a form led to.
async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    frame: Frame,
    problems: Problems,
    new_codes: &[RecoveryCode],
) -> Result<Response, Failure> {
    let (person, own) = (person(visitor)?, &dashboard.engine.own);
    let factor = own.second_factor(person).await?;
    // Only the form that is about to confirm it needs the secret; nothing else shows it again.
    let sessions = own.sessions(person).await?;
    let this = TokenHash::of(&visitor.session);
    let status = problems.status();
    let page = SecurityPage {
        frame,
        email: person.email.as_str(),
        min_chars: MIN_PASSWORD_CHARS,
        problems,
        factor: Factor::of(&factor, person),
        new_codes: new_codes
            .iter()
            .map(|code| code.reveal().to_owned())
            .collect(),
        sessions: sessions
            .iter()
            .map(|session| SessionRow::of(session, &this))
            .collect(),
    };
    Ok(show_page(status, &page))
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
) -> Result<Response, Failure> {
    let frame = visitor.frame();
    page(&dashboard, &visitor, frame, Problems::default(), &[]).await
}

/// What a refusal is to the person: words at a field, or another page.
fn words(error: OwnError) -> Result<String, Failure> {
    match error {
        OwnError::WrongPassword => Ok("This is not your password.".to_owned()),
        OwnError::WrongCode => {
            Ok("This is not the code of this moment. Wait for the next one.".to_owned())
        }
        OwnError::Changed => {
            Ok("This was changed in another window. Look at the page again.".to_owned())
        }
        OwnError::NoSession => Ok("This session is over already.".to_owned()),
        OwnError::TooMany { retry_after_s } => {
            let words = format!("Too many tries. Wait {retry_after_s} seconds, then try again.");
            Ok(words)
        }
        OwnError::Busy(busy) => Err(busy.into()),
        OwnError::Store(error) => Err(error.into()),
    }
}

async fn change_password(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let person = person(&visitor)?;
    let old = Password::given(form.take("old"));
    let new = match chosen(&mut form, &person.email) {
        Ok(new) => new,
        Err(wrong) => {
            let problems = Problems {
                new: wrong.password,
                repeated: wrong.repeated,
                ..Problems::default()
            };
            return page(&dashboard, &visitor, visitor.frame(), problems, &[]).await;
        }
    };
    let (own, by) = (&dashboard.engine.own, visitor.by());
    let session = &visitor.session;
    let ends_grants = disconnects(&form);
    let changed = own.change_password(&by, person, old, new, session, ends_grants);
    let (frame, problems) = match changed.await {
        Ok(()) => {
            let said = if ends_grants {
                "Your password is changed. Everywhere else you are signed out, and your AI clients are disconnected."
            } else {
                "Your password is changed. Everywhere else you are signed out."
            };
            (visitor.frame().saying(said), Problems::default())
        }
        Err(error) => {
            let problems = Problems {
                old: Some(words(error)?),
                ..Problems::default()
            };
            (visitor.frame(), problems)
        }
    };
    page(&dashboard, &visitor, frame, problems, &[]).await
}

async fn change_second_factor(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let (person, own, by) = (person(&visitor)?, &dashboard.engine.own, visitor.by());
    let mut problems = Problems::default();
    let mut codes = Vec::new();
    let mut said = None;
    match form.get("action") {
        Some("offer") => {
            if let Err(error) = own.offer(person).await {
                problems.code = Some(words(error)?);
            }
        }
        Some("enable") => {
            let password = Password::given(form.take("password"));
            let code = form.take("code");
            match own.enable(&by, person, password, &code).await {
                Ok(new) => {
                    codes = new;
                    said = Some("The second factor is on. Keep the recovery codes below.");
                }
                Err(error @ OwnError::WrongPassword) => problems.proof = Some(words(error)?),
                Err(error) => problems.code = Some(words(error)?),
            }
        }
        Some("disable") => {
            let password = Password::given(form.take("password"));
            match own.disable(&by, person, password).await {
                Ok(()) => said = Some("The second factor is off."),
                Err(error) => problems.proof = Some(words(error)?),
            }
        }
        Some("codes") => {
            let password = Password::given(form.take("password"));
            match own.renew_codes(&by, person, password).await {
                Ok(new) => {
                    codes = new;
                    said = Some("Your old recovery codes work no longer. Keep those below.");
                }
                Err(error) => problems.proof = Some(words(error)?),
            }
        }
        _ => return Err(Failure::Form),
    }
    let frame = match said {
        Some(said) => visitor.frame().saying(said),
        None => visitor.frame(),
    };
    page(&dashboard, &visitor, frame, problems, &codes).await
}

async fn end_sessions(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let (person, own, by) = (person(&visitor)?, &dashboard.engine.own, visitor.by());
    if form.get("action") == Some("all") {
        own.end_sessions(&by, person).await?;
        let sign_in = ReturnPath::parse(None).sign_in_address();
        let response = Redirect::to(&sign_in).into_response();
        return Ok(with_cookie(response, Some(dashboard.no_session_cookie())));
    }
    let Some(name) = form.get("session") else {
        return Err(Failure::Form);
    };
    let frame = match own.end_session(&by, person, name).await {
        Ok(()) => visitor.frame().saying("The session is ended."),
        Err(error) => visitor.frame().refusing(words(error)?),
    };
    // Whoever ends the session that they are in is out.
    if dashboard
        .engine
        .sign_in
        .find(&visitor.session, visitor.address)
        .await?
        .is_none()
    {
        let sign_in = ReturnPath::parse(None).sign_in_address();
        let response = Redirect::to(&sign_in).into_response();
        return Ok(with_cookie(response, Some(dashboard.no_session_cookie())));
    }
    page(&dashboard, &visitor, frame, Problems::default(), &[]).await
}
