//! Setting a password: after an invitation, and for the operator after the first start.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{Redirect, Response};
use domain::AccountId;
use domain::person::{Email, MIN_PASSWORD_CHARS, Password, SignedIn};
use domain::ports::{Invitation, Purpose};
use engine::Actor;
use engine::identity::people::PasswordError;
use engine::identity::sign_in::SignInStep;
use http::StatusCode;

use super::sign_in::enter;
use crate::Dashboard;
use crate::kit::browser::{Browser, form_token};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, notice, show_bare, with_cookie};
use crate::kit::return_path::ReturnPath;
use crate::kit::session::notice_address;

/// The purposes of the tokens in the forms.
const ACCEPT: &str = "invitation";
const CREATE_OPERATOR: &str = "operator";

#[derive(Template)]
#[template(path = "password.html")]
struct PasswordPage<'a> {
    frame: Frame,
    title: &'a str,
    text: String,
    button: &'a str,
    form_token: String,
    email: &'a str,
    is_email_fixed: bool,
    min_chars: usize,
    /// A person who resets a password may have connected clients.
    offers_disconnecting: bool,
    /// The sign-in page for people who have a password; it leads back here.
    sign_in: Option<String>,
    problems: Problems,
}

/// The problem of each field.
#[derive(Default)]
pub(super) struct Problems {
    email: Option<String>,
    pub(super) password: Option<String>,
    pub(super) repeated: Option<String>,
}

impl Problems {
    fn status(&self) -> StatusCode {
        if self.email.is_none() && self.password.is_none() && self.repeated.is_none() {
            StatusCode::OK
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    }
}

/// All problems of a new password at once.
pub(super) fn chosen(form: &mut Form, email: &Email) -> Result<Password, Problems> {
    let (text, repeated) = (form.take("password"), form.take("repeated"));
    let differs = text != repeated;
    let mismatch = differs.then(|| "The passwords do not match.".to_owned());
    match (Password::choose(text, email), mismatch) {
        (Ok(password), None) => Ok(password),
        (chosen, repeated) => Err(Problems {
            password: chosen.err().map(|weak| weak.to_string()),
            repeated,
            ..Problems::default()
        }),
    }
}

/// Whether to disconnect the clients of the person.
pub(super) fn disconnects(form: &Form) -> bool {
    form.get("disconnect").is_some()
}

pub(super) fn link_is_dead() -> Response {
    notice(
        StatusCode::NOT_FOUND,
        "This link does not work",
        "It was used before, has expired, or was not copied completely. Ask the person who gave it to you for a new one.",
    )
}

/// Asks for a password. Opening the page does not use the link up, because mail programs open links in advance.
pub(super) async fn ask_invited(
    State(dashboard): State<Arc<Dashboard>>,
    Path(link): Path<String>,
    browser: Browser,
) -> Result<Response, Failure> {
    let Some(invitation) = dashboard.engine.people.find_invitation(&link).await? else {
        return Ok(link_is_dead());
    };
    if let Some(invited) = dashboard.invited(&browser, &invitation).await? {
        let text = what_for(&dashboard, &invitation).await?;
        return Ok(invited.page(text, &path_of(&link)));
    }
    let problems = Problems::default();
    invited_page(&dashboard, &browser, &link, &invitation, problems).await
}

fn path_of(link: &str) -> ReturnPath {
    ReturnPath::parse(Some(&format!("/dashboard/invitation/{link}")))
}

async fn what_for(dashboard: &Dashboard, invitation: &Invitation) -> Result<String, Failure> {
    let Purpose::Join { role, account } = invitation.purpose else {
        return Ok("You will have to sign in again everywhere else.".to_owned());
    };
    let account = match account {
        Some(account) => dashboard.engine.accounts.find_by_id(account).await?,
        None => None,
    };
    let place = account.map_or_else(
        || "this service".to_owned(),
        |account| format!("the account {}", account.name),
    );
    Ok(format!("You are invited to {place} as {role}."))
}

async fn invited_page(
    dashboard: &Dashboard,
    browser: &Browser,
    link: &str,
    invitation: &Invitation,
    problems: Problems,
) -> Result<Response, Failure> {
    let text = what_for(dashboard, invitation).await?;
    let (title, text, sign_in) = match invitation.purpose {
        Purpose::NewPassword(_) => ("Set a new password", text, None),
        // The same text for everybody, so that it does not tell who has a password already.
        Purpose::Join { .. } => (
            "Welcome",
            format!("{text} Set a password to sign in with."),
            Some(path_of(link).sign_in_address()),
        ),
    };
    let key = browser.form_key();
    let status = problems.status();
    let page = PasswordPage {
        frame: Frame::plain(),
        title,
        text,
        button: "Set password and sign in",
        form_token: key.token(ACCEPT),
        email: invitation.email.as_str(),
        is_email_fixed: true,
        min_chars: MIN_PASSWORD_CHARS,
        offers_disconnecting: matches!(invitation.purpose, Purpose::NewPassword(_)),
        sign_in,
        problems,
    };
    Ok(with_cookie(show_bare(status, &page), key.cookie(dashboard)))
}

pub(super) async fn accept(
    State(dashboard): State<Arc<Dashboard>>,
    Path(link): Path<String>,
    browser: Browser,
    mut form: Form,
) -> Result<Response, Failure> {
    let people = &dashboard.engine.people;
    let Some(invitation) = people.find_invitation(&link).await? else {
        return Ok(link_is_dead());
    };
    if let Some(invited) = dashboard.invited(&browser, &invitation).await? {
        return invited.join(&dashboard, &browser, &form, &link).await;
    }
    if !browser.sent(&form, ACCEPT, None) {
        return Err(Failure::NotFromHere);
    }
    let password = match chosen(&mut form, &invitation.email) {
        Ok(password) => password,
        Err(problems) => {
            return invited_page(&dashboard, &browser, &link, &invitation, problems).await;
        }
    };
    let (device, ends_grants) = (browser.device(), disconnects(&form));
    match people.accept(&device, &link, password, ends_grants).await {
        Ok(entered) => {
            dashboard.replace_session(&browser).await;
            Ok(enter(&dashboard, &browser, &entered, &ReturnPath::parse(None)).await)
        }
        Err(PasswordError::Taken) => {
            let problems = Problems {
                password: Some("This address already has a password: sign in with it.".to_owned()),
                ..Problems::default()
            };
            invited_page(&dashboard, &browser, &link, &invitation, problems).await
        }
        Err(PasswordError::Link) => Ok(link_is_dead()),
        Err(PasswordError::Busy(busy)) => Err(busy.into()),
        Err(PasswordError::Store(error)) => Err(error.into()),
    }
}

/// Asks the operator of the first start for an email address and a password.
pub(super) async fn ask_operator(
    State(dashboard): State<Arc<Dashboard>>,
    browser: Browser,
) -> Result<Response, Failure> {
    let (session, signed_in, _) = operator(&dashboard, &browser).await?;
    let problems = Problems::default();
    Ok(operator_page(session, &signed_in, "", problems))
}

/// The operator of the first start. Everybody else has a password and is redirected to the home page.
async fn operator<'a>(
    dashboard: &Dashboard,
    browser: &'a Browser,
) -> Result<(&'a str, SignedIn, AccountId), Failure> {
    let here = ReturnPath::parse(Some("/dashboard/password"));
    let (session, signed_in) = dashboard.signed_in(browser, &here).await?;
    match signed_in {
        SignedIn::ByLink(account) => Ok((session, signed_in, account)),
        SignedIn::Person(_) => {
            let home = Redirect::to(ReturnPath::parse(None).as_str());
            Err(Failure::Elsewhere(home))
        }
    }
}

fn operator_page(session: &str, signed_in: &SignedIn, email: &str, problems: Problems) -> Response {
    let status = problems.status();
    let page = PasswordPage {
        frame: Frame::signed_in(session, signed_in, &ReturnPath::parse(None)),
        title: "Set your email address and password",
        text: "The link that brought you here works only once. You will be the operator, the person who runs this service.".to_owned(),
        button: "Save",
        form_token: form_token(session, CREATE_OPERATOR),
        email,
        is_email_fixed: false,
        min_chars: MIN_PASSWORD_CHARS,
        offers_disconnecting: false,
        sign_in: None,
        problems,
    };
    show_bare(status, &page)
}

pub(super) async fn create_operator(
    State(dashboard): State<Arc<Dashboard>>,
    browser: Browser,
    mut form: Form,
) -> Result<Response, Failure> {
    let (session, signed_in, account) = operator(&dashboard, &browser).await?;
    if !browser.sent(&form, CREATE_OPERATOR, Some(session)) {
        return Err(Failure::NotFromHere);
    }
    let typed = form.take("email");
    let again = |problems| Ok(operator_page(session, &signed_in, &typed, problems));
    let wrong_email = |problem: String| Problems {
        email: Some(problem),
        ..Problems::default()
    };
    let Ok(email) = typed.parse::<Email>() else {
        // Another address shows what is wrong with the password, too.
        let other = "ann@example.com".parse().expect("an address");
        let problems = chosen(&mut form, &other).err().unwrap_or_default();
        let email = Some("Write it like ann@example.com.".to_owned());
        return again(Problems { email, ..problems });
    };
    let password = match chosen(&mut form, &email) {
        Ok(password) => password,
        Err(problems) => return again(problems),
    };
    let by = Actor::signed_in(&signed_in, browser.address);
    let people = &dashboard.engine.people;
    match people
        .create_operator(&by, account, email, password, (session, &browser.device()))
        .await
    {
        Ok(session) => {
            let home = ReturnPath::parse(None);
            let back = notice_address(&session, home.as_str(), "password");
            let entered = SignInStep::Session(session);
            let back = ReturnPath::parse(Some(&back));
            Ok(enter(&dashboard, &browser, &entered, &back).await)
        }
        Err(PasswordError::Taken | PasswordError::Link) => {
            again(wrong_email("This address is already in use.".to_owned()))
        }
        Err(PasswordError::Busy(busy)) => Err(busy.into()),
        Err(PasswordError::Store(error)) => Err(error.into()),
    }
}
