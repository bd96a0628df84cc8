//! Setting a password: whoever is invited, and the operator after the first start.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{Redirect, Response};
use domain::AccountId;
use domain::person::{Email, MIN_PASSWORD_CHARS, Password, SignedIn};
use domain::ports::{Invitation, Purpose};
use engine::By;
use engine::identity::people::PasswordError;
use engine::identity::sign_in::Entered;
use http::StatusCode;

use super::sign_in::enter;
use crate::Dashboard;
use crate::kit::browser::{Visit, form_token};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, notice, show_bare, with_cookie};
use crate::kit::return_path::ReturnPath;

/// What the forms' tokens are for.
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
    /// Whether somebody sets a new password who may have connected clients.
    offers_disconnecting: bool,
    /// Where whoever has a password already signs in, to come back here.
    sign_in: Option<String>,
    problems: Problems,
}

/// What is wrong with each field.
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

/// The password that was chosen, if it may be.
pub(super) fn chosen(form: &mut Form, email: &Email) -> Result<Password, Problems> {
    let (text, repeated) = (form.take("password"), form.take("repeated"));
    let is_same = text == repeated;
    let password = Password::choose(text, email).map_err(|weak| Problems {
        password: Some(weak.to_string()),
        ..Problems::default()
    })?;
    if is_same {
        return Ok(password);
    }
    Err(Problems {
        repeated: Some("This is not the same password.".to_owned()),
        ..Problems::default()
    })
}

/// Whether clients that the person connected shall be disconnected with the new password.
pub(super) fn disconnects(form: &Form) -> bool {
    form.get("disconnect").is_some()
}

pub(super) fn link_is_dead() -> Response {
    notice(
        StatusCode::NOT_FOUND,
        "This link does not work",
        "It was used before, has expired, or was not copied whole. Ask whoever gave it to you for a new one.",
    )
}

/// Asks the invited for a password. Programs that look at links in advance use nothing up.
pub(super) async fn ask_invited(
    State(dashboard): State<Arc<Dashboard>>,
    Path(link): Path<String>,
    visit: Visit,
) -> Result<Response, Failure> {
    let Some(invitation) = dashboard.engine.people.find_invitation(&link).await? else {
        return Ok(link_is_dead());
    };
    if let Some(invited) = dashboard.invited(&visit, &invitation).await? {
        let text = what_for(&dashboard, &invitation).await?;
        return Ok(invited.page(text, &path_of(&link)));
    }
    let problems = Problems::default();
    invited_page(&dashboard, &visit, &link, &invitation, problems).await
}

fn path_of(link: &str) -> ReturnPath {
    ReturnPath::parse(Some(&format!("/dashboard/invitation/{link}")))
}

/// What somebody is invited to, in a sentence.
async fn what_for(dashboard: &Dashboard, invitation: &Invitation) -> Result<String, Failure> {
    let Purpose::Join { role, account } = invitation.purpose else {
        return Ok("Whoever is still signed in as you will have to sign in again.".to_owned());
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
    visit: &Visit,
    link: &str,
    invitation: &Invitation,
    problems: Problems,
) -> Result<Response, Failure> {
    let text = what_for(dashboard, invitation).await?;
    let (title, text, sign_in) = match invitation.purpose {
        Purpose::NewPassword(_) => ("Set a new password", text, None),
        // The same for everybody: it does not tell who signs in here already.
        Purpose::Join { .. } => (
            "Welcome",
            format!("{text} Set a password to sign in with."),
            Some(path_of(link).sign_in_address()),
        ),
    };
    let key = visit.form_key();
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

/// Sets the password of the invited and signs in.
pub(super) async fn accept(
    State(dashboard): State<Arc<Dashboard>>,
    Path(link): Path<String>,
    visit: Visit,
    mut form: Form,
) -> Result<Response, Failure> {
    let people = &dashboard.engine.people;
    let Some(invitation) = people.find_invitation(&link).await? else {
        return Ok(link_is_dead());
    };
    if let Some(invited) = dashboard.invited(&visit, &invitation).await? {
        return invited.join(&dashboard, &visit, &form, &link).await;
    }
    if !visit.sent(&form, ACCEPT, None) {
        return Err(Failure::NotFromHere);
    }
    let password = match chosen(&mut form, &invitation.email) {
        Ok(password) => password,
        Err(problems) => {
            return invited_page(&dashboard, &visit, &link, &invitation, problems).await;
        }
    };
    let (device, ends_grants) = (visit.device(), disconnects(&form));
    match people.accept(&device, &link, password, ends_grants).await {
        Ok(entered) => {
            dashboard.replace_session(&visit).await;
            Ok(enter(&dashboard, &visit, &entered, &ReturnPath::parse(None)).await)
        }
        Err(PasswordError::Taken) => {
            let problems = Problems {
                password: Some("This address has a password already: sign in with it.".to_owned()),
                ..Problems::default()
            };
            invited_page(&dashboard, &visit, &link, &invitation, problems).await
        }
        Err(PasswordError::Link) => Ok(link_is_dead()),
        Err(PasswordError::Busy(busy)) => Err(busy.into()),
        Err(PasswordError::Store(error)) => Err(error.into()),
    }
}

/// Offers the operator an address and a password, for the time after the one-time link.
pub(super) async fn ask_operator(
    State(dashboard): State<Arc<Dashboard>>,
    visit: Visit,
) -> Result<Response, Failure> {
    let (session, signed_in, _) = operator(&dashboard, &visit).await?;
    let problems = Problems::default();
    Ok(operator_page(session, &signed_in, "", problems))
}

/// Who came by the link; others have a password already and go home.
async fn operator<'a>(
    dashboard: &Dashboard,
    visit: &'a Visit,
) -> Result<(&'a str, SignedIn, AccountId), Failure> {
    let here = ReturnPath::parse(Some("/dashboard/password"));
    let (session, signed_in) = dashboard.signed_in(visit, &here).await?;
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
        frame: Frame::of(session, signed_in, &ReturnPath::parse(None)),
        title: "How you sign in from now on",
        text: "The link that brought you here worked once. You will be the operator: who runs this service.".to_owned(),
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

/// Makes the operator a person.
pub(super) async fn create_operator(
    State(dashboard): State<Arc<Dashboard>>,
    visit: Visit,
    mut form: Form,
) -> Result<Response, Failure> {
    let (session, signed_in, account) = operator(&dashboard, &visit).await?;
    if !visit.sent(&form, CREATE_OPERATOR, Some(session)) {
        return Err(Failure::NotFromHere);
    }
    let typed = form.take("email");
    let again = |problems| Ok(operator_page(session, &signed_in, &typed, problems));
    let wrong_email = |problem: String| Problems {
        email: Some(problem),
        ..Problems::default()
    };
    let Ok(email) = typed.parse::<Email>() else {
        return again(wrong_email("Write it like ann@example.com.".to_owned()));
    };
    let password = match chosen(&mut form, &email) {
        Ok(password) => password,
        Err(problems) => return again(problems),
    };
    let by = By::signed_in(&signed_in, visit.address);
    let people = &dashboard.engine.people;
    match people
        .create_operator(&by, account, email, password, (session, &visit.device()))
        .await
    {
        Ok(session) => {
            let entered = Entered::Session(session);
            Ok(enter(&dashboard, &visit, &entered, &ReturnPath::parse(None)).await)
        }
        Err(PasswordError::Taken | PasswordError::Link) => again(wrong_email(
            "Somebody signs in with this address already.".to_owned(),
        )),
        Err(PasswordError::Busy(busy)) => Err(busy.into()),
        Err(PasswordError::Store(error)) => Err(error.into()),
    }
}
