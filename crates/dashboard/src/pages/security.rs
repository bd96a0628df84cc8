//! Security settings of a person: password, second factor and sessions.

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
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page, with_cookie};
use crate::kit::qr;
use crate::kit::return_path::ReturnPath;
use crate::kit::session::{Posted, Session};

const PATH: &str = "/dashboard/settings/security";

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    // The addresses of the forms show the page, too, for people who reload or sign in again.
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
    /// Whether the person must set up a second factor before they can go on.
    is_demanded: bool,
    factor: Factor,
    new_codes: Vec<String>,
    sessions: Vec<SessionRow>,
}

/// The problem of each field.
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
    fn new(factor: &SecondFactor, person: &Person) -> Self {
        match (&factor.active, &factor.offered) {
            (Some(_), _) => Self::On {
                codes_left: factor.codes_left,
            },
            (None, None) => Self::Off,
            (None, Some(secret)) => {
                let address = secret.address(&person.email);
                Self::Offered {
                    letters: secret.in_letters(),
                    picture: qr::Picture::encode(&address),
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
    fn new(session: &SessionRecord, this: &TokenHash) -> Self {
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

/// The operator who came by the link of the first start must set a password first.
fn person(session: &Session) -> Result<&Person, Failure> {
    let person = session.signed_in.person();
    person.ok_or_else(|| Failure::Elsewhere(Redirect::to("/dashboard/password")))
}

async fn page(
    dashboard: &Dashboard,
    session: &Session,
    frame: Frame,
    problems: Problems,
    new_codes: &[RecoveryCode],
) -> Result<Response, Failure> {
    let (person, own) = (person(session)?, &dashboard.engine.own);
    let factor = own.second_factor(person).await?;
    let sessions = own.sessions(person).await?;
    let this = TokenHash::from_secret(&session.secret);
    let status = problems.status();
    let page = SecurityPage {
        frame,
        email: person.email.as_str(),
        min_chars: MIN_PASSWORD_CHARS,
        problems,
        is_demanded: factor.active.is_none()
            && dashboard.settings.second_factor.concerns(person.role),
        factor: Factor::new(&factor, person),
        new_codes: new_codes
            .iter()
            .map(|code| code.reveal().to_owned())
            .collect(),
        sessions: sessions
            .iter()
            .map(|session| SessionRow::new(session, &this))
            .collect(),
    };
    Ok(show_page(status, &page))
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
) -> Result<Response, Failure> {
    let frame = session.frame();
    page(&dashboard, &session, frame, Problems::default(), &[]).await
}

/// The message for a field, or another page.
fn words(error: OwnError) -> Result<String, Failure> {
    match error {
        OwnError::WrongPassword => Ok("This is not your password.".to_owned()),
        OwnError::WrongCode => Ok("This code is not valid now. Wait for the next one.".to_owned()),
        OwnError::Changed => Ok("This was changed in another window. Reload the page.".to_owned()),
        OwnError::NoSession => Ok("This session has already ended.".to_owned()),
        OwnError::TooMany { retry_after_s } => {
            let words = format!("Too many attempts. Wait {retry_after_s} seconds, then try again.");
            Ok(words)
        }
        OwnError::Busy(busy) => Err(busy.into()),
        OwnError::Store(error) => Err(error.into()),
    }
}

async fn change_password(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let person = person(&session)?;
    let old = Password::given(form.take("old"));
    let new = match chosen(&mut form, &person.email) {
        Ok(new) => new,
        Err(wrong) => {
            let problems = Problems {
                new: wrong.password,
                repeated: wrong.repeated,
                ..Problems::default()
            };
            return page(&dashboard, &session, session.frame(), problems, &[]).await;
        }
    };
    let (own, by) = (&dashboard.engine.own, session.by());
    let ends_grants = disconnects(&form);
    let changed = own.change_password(&by, person, old, new, &session.secret, ends_grants);
    let (frame, problems) = match changed.await {
        Ok(()) => {
            let said = if ends_grants {
                "Your password was changed. You are signed out everywhere else, and your AI clients are disconnected."
            } else {
                "Your password was changed. You are signed out everywhere else."
            };
            (session.frame().with_success(said), Problems::default())
        }
        Err(error) => {
            let problems = Problems {
                old: Some(words(error)?),
                ..Problems::default()
            };
            (session.frame(), problems)
        }
    };
    page(&dashboard, &session, frame, problems, &[]).await
}

async fn change_second_factor(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let (person, own, by) = (person(&session)?, &dashboard.engine.own, session.by());
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
                    said = Some("Your old recovery codes no longer work. Keep the ones below.");
                }
                Err(error) => problems.proof = Some(words(error)?),
            }
        }
        _ => return Err(Failure::Form),
    }
    let frame = match said {
        Some(said) => session.frame().with_success(said),
        None => session.frame(),
    };
    page(&dashboard, &session, frame, problems, &codes).await
}

/// Names the browser. A session that has ended already is reported without a question.
async fn ask_to_end(
    dashboard: &Dashboard,
    session: &Session,
    form: &Form,
    name: &str,
) -> Result<(), Failure> {
    let sessions = dashboard.engine.own.sessions(person(session)?).await?;
    let Some(ended) = sessions.iter().find(|known| known.name() == name) else {
        return Ok(());
    };
    let ended = SessionRow::new(ended, &TokenHash::from_secret(&session.secret));
    let text = if ended.is_this {
        "This is the browser that you use now. You are signed out at once.".to_owned()
    } else {
        format!(
            "{}, from {}, is signed out at once.",
            ended.browser, ended.address
        )
    };
    session.ask(
        form,
        &Question {
            title: "End this session?",
            text: &text,
            button: "End session",
            back: PATH,
            is_dangerous: true,
        },
    )
}

async fn end_sessions(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let (person, own, by) = (person(&session)?, &dashboard.engine.own, session.by());
    if form.get("action") == Some("all") {
        session.ask(
            &form,
            &Question {
                title: "Sign out everywhere?",
                text: "You are signed out in every browser, including this one.",
                button: "Sign out everywhere",
                back: PATH,
                is_dangerous: true,
            },
        )?;
        own.end_sessions(&by, person).await?;
        let sign_in = ReturnPath::parse(None).sign_in_address();
        let response = Redirect::to(&sign_in).into_response();
        return Ok(with_cookie(
            response,
            Some(dashboard.clear_session_cookie()),
        ));
    }
    let Some(name) = form.get("session") else {
        return Err(Failure::Form);
    };
    ask_to_end(&dashboard, &session, &form, name).await?;
    let frame = match own.end_session(&by, person, name).await {
        Ok(()) => session.frame().with_success("The session was ended."),
        Err(error) => session.frame().with_problem(words(error)?),
    };
    // Ending the current session signs the person out.
    if dashboard
        .engine
        .sign_in
        .find(&session.secret, session.address)
        .await?
        .is_none()
    {
        let sign_in = ReturnPath::parse(None).sign_in_address();
        let response = Redirect::to(&sign_in).into_response();
        return Ok(with_cookie(
            response,
            Some(dashboard.clear_session_cookie()),
        ));
    }
    page(&dashboard, &session, frame, Problems::default(), &[]).await
}
