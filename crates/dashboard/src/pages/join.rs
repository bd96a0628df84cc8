//! Accepting an invitation by somebody who signs in here already: a further account instead of a password.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::person::{Person, SignedIn};
use domain::ports::{Invitation, Purpose};
use engine::identity::people::PasswordError;
use http::StatusCode;

use super::password::link_is_dead;
use crate::Dashboard;
use crate::kit::browser::{Visit, form_token};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, show_bare, with_cookie};
use crate::kit::return_path::ReturnPath;

/// What the form's token is for.
const JOIN: &str = "join";

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage {
    frame: Frame,
    text: String,
    form_token: String,
}

/// Somebody who is signed in and invited.
pub(super) struct Invited<'a> {
    session: &'a str,
    person: Person,
}

impl Dashboard {
    /// Whether whoever opens an invitation is signed in as the one that it is for.
    pub(super) async fn invited<'a>(
        &self,
        visit: &'a Visit,
        invitation: &Invitation,
    ) -> Result<Option<Invited<'a>>, Failure> {
        let (Some(session), Purpose::Join { .. }) = (&visit.session, invitation.purpose) else {
            return Ok(None);
        };
        Ok(
            match self.engine.sign_in.find(session, visit.address).await? {
                Some(SignedIn::Person(person)) if person.email == invitation.email => {
                    Some(Invited { session, person })
                }
                _ => None,
            },
        )
    }
}

impl Invited<'_> {
    /// Asks whether they want to join. `text` says what.
    pub(super) fn page(self, text: String, back: &ReturnPath) -> Response {
        let signed_in = SignedIn::Person(self.person);
        let page = JoinPage {
            frame: Frame::of(self.session, &signed_in, back),
            text,
            form_token: form_token(self.session, JOIN),
        };
        show_bare(StatusCode::OK, &page)
    }

    /// Makes the account one of theirs and leads there.
    pub(super) async fn join(
        self,
        dashboard: &Dashboard,
        visit: &Visit,
        form: &Form,
        link: &str,
    ) -> Result<Response, Failure> {
        if !visit.sent(form, JOIN, Some(self.session)) {
            return Err(Failure::NotFromHere);
        }
        let people = &dashboard.engine.people;
        let device = visit.device();
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
