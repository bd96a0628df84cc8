//! Accepting an invitation to a further account, for a person who is signed in.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::person::{Person, SignedIn};
use domain::ports::{Invitation, Purpose};
use engine::identity::people::PasswordError;
use http::StatusCode;

use super::password::link_is_dead;
use crate::Dashboard;
use crate::kit::browser::{Browser, form_token};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, show_bare, with_cookie};
use crate::kit::return_path::ReturnPath;

const JOIN: &str = "join";

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage {
    frame: Frame,
    text: String,
    form_token: String,
}

pub(super) struct Invited<'a> {
    session: &'a str,
    person: Person,
}

impl Dashboard {
    /// Returns the person if they are signed in with the email address of the invitation.
    pub(super) async fn invited<'a>(
        &self,
        browser: &'a Browser,
        invitation: &Invitation,
    ) -> Result<Option<Invited<'a>>, Failure> {
        let (Some(session), Purpose::Join { .. }) = (&browser.session, invitation.purpose) else {
            return Ok(None);
        };
        Ok(
            match self.engine.sign_in.find(session, browser.address).await? {
                Some(SignedIn::Person(person)) if person.email == invitation.email => {
                    Some(Invited { session, person })
                }
                _ => None,
            },
        )
    }
}

impl Invited<'_> {
    /// Asks for confirmation. `text` names the account.
    pub(super) fn page(self, text: String, back: &ReturnPath) -> Response {
        let signed_in = SignedIn::Person(self.person);
        let page = JoinPage {
            frame: Frame::signed_in(self.session, &signed_in, back),
            text,
            form_token: form_token(self.session, JOIN),
        };
        show_bare(StatusCode::OK, &page)
    }

    /// Adds the account and switches to it.
    pub(super) async fn join(
        self,
        dashboard: &Dashboard,
        browser: &Browser,
        form: &Form,
        link: &str,
    ) -> Result<Response, Failure> {
        if !browser.sent(form, JOIN, Some(self.session)) {
            return Err(Failure::NotFromHere);
        }
        let people = &dashboard.engine.people;
        let device = browser.device();
        match people.join(&device, link, &self.person, self.session).await {
            Ok(session) => {
                let home = Redirect::to(ReturnPath::parse(None).as_str()).into_response();
                Ok(with_cookie(home, Some(dashboard.session_cookie(&session))))
            }
            Err(PasswordError::Store(error)) => Err(error.into()),
            Err(PasswordError::Busy(busy)) => Err(busy.into()),
            Err(PasswordError::Link | PasswordError::Taken) => Ok(link_is_dead()),
        }
    }
}
