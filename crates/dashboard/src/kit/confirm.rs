//! Asks before a form takes effect: "are you sure?", or for the password, or both.
//!
//! The page repeats the fields of the form, so it works without a script and for every form.

use askama::Template;
use axum::response::Redirect;
use domain::person::{Password, SignedIn};
use engine::identity::people::OwnError;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::browser::FORM_TOKEN;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, show};
use crate::kit::session::Session;

/// The field that the page adds when somebody is sure.
const SURE: &str = "sure";
const PASSWORD: &str = "current_password";
/// For the browser's list of passwords.
const USERNAME: &str = "username";

/// What is asked.
pub(crate) struct Question<'a> {
    pub(crate) title: &'a str,
    pub(crate) text: &'a str,
    /// The label of the button that does it.
    pub(crate) button: &'a str,
    /// Where "Cancel" leads.
    pub(crate) back: &'a str,
    /// Whether it does harm or cannot be undone, so that a click is asked for in any case.
    pub(crate) is_dangerous: bool,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    frame: Frame,
    /// Where the form was sent.
    path: &'a str,
    question: &'a Question<'a>,
    fields: Vec<(&'a str, &'a str)>,
    email: Option<&'a str>,
    problem: Option<String>,
}

/// Whether a person entered their password within the last minutes.
pub(crate) enum Proof {
    Given,
    Missing { email: String },
    Wrong { email: String, problem: String },
}

/// A session with its person, who may have to enter their password again.
#[derive(Clone, Copy)]
pub(crate) struct Prover<'a> {
    pub(crate) secret: &'a str,
    pub(crate) signed_in: &'a SignedIn,
}

impl Session {
    pub(crate) fn prover(&self) -> Prover<'_> {
        Prover {
            secret: &self.secret,
            signed_in: &self.signed_in,
        }
    }

    /// Goes on only if the person is sure.
    pub(crate) fn ask(&self, form: &Form, question: &Question<'_>) -> Result<(), Failure> {
        if is_answered(form, question) {
            return Ok(());
        }
        Err(self.question(form, question, None, None))
    }

    /// Goes on only if the person entered their password within the last minutes, for changes that weaken an account:
    /// an open session alone must not be enough.
    pub(crate) async fn ask_for_password(
        &self,
        dashboard: &Dashboard,
        form: &mut Form,
        question: &Question<'_>,
    ) -> Result<(), Failure> {
        let (email, problem) = match self.prover().prove(dashboard, form).await? {
            Proof::Given => return self.ask(form, question),
            Proof::Missing { email } => (email, None),
            Proof::Wrong { email, problem } => (email, Some(problem)),
        };
        Err(self.question(form, question, Some(&email), problem))
    }

    /// The page that asks. With an email address it also asks for the password.
    fn question(
        &self,
        form: &Form,
        question: &Question<'_>,
        email: Option<&str>,
        problem: Option<String>,
    ) -> Failure {
        let is_own = |name: &str| [FORM_TOKEN, SURE, PASSWORD, USERNAME].contains(&name);
        let status = if problem.is_some() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        let page = ConfirmPage {
            frame: self.frame(),
            path: &self.path,
            question,
            fields: form.fields().filter(|(name, _)| !is_own(name)).collect(),
            email,
            problem,
        };
        Failure::Page(Box::new(show(status, &page)))
    }
}

impl Prover<'_> {
    /// Whether the person entered their password within the last minutes.
    pub(crate) async fn is_proved(self, dashboard: &Dashboard) -> Result<bool, Failure> {
        Ok(dashboard.engine.own.is_proved(self.secret).await?)
    }

    /// Whether the person entered their password within the last minutes, or in this form, for forms that ask for it
    /// themselves.
    pub(crate) async fn prove(
        self,
        dashboard: &Dashboard,
        form: &mut Form,
    ) -> Result<Proof, Failure> {
        let own = &dashboard.engine.own;
        let given = form.take(PASSWORD);
        if own.is_proved(self.secret).await? {
            return Ok(Proof::Given);
        }
        // The operator of the first start has no password yet.
        let Some(person) = self.signed_in.person() else {
            return Err(Failure::Elsewhere(Redirect::to("/dashboard/password")));
        };
        let email = person.email.to_string();
        if given.is_empty() {
            return Ok(Proof::Missing { email });
        }
        let proved = own.prove(person, Password::given(given), self.secret);
        let problem = match proved.await {
            Ok(()) => return Ok(Proof::Given),
            Err(OwnError::TooMany { retry_after_s }) => {
                format!("Too many attempts. Wait {retry_after_s} seconds, then try again.")
            }
            Err(OwnError::Busy(busy)) => return Err(busy.into()),
            Err(OwnError::Store(error)) => return Err(error.into()),
            Err(_) => "This is not your password.".to_owned(),
        };
        Ok(Proof::Wrong { email, problem })
    }
}

fn is_answered(form: &Form, question: &Question<'_>) -> bool {
    !question.is_dangerous || form.get(SURE) == Some("yes")
}
