//! The field for the password within a form: for forms with secrets, which a page that asks afterwards would have to
//! repeat, and for the consent page, whose form has a token of its own.

use crate::Dashboard;
use crate::kit::confirm::{Proof, Prover};
use crate::kit::failure::Failure;
use crate::kit::form::Form;

#[derive(Default)]
pub(crate) struct PasswordField {
    /// Whose password is asked for; nobody's if it was entered within the last minutes.
    pub(crate) email: Option<String>,
    /// The operator of the first start must set a password before.
    pub(crate) is_unset: bool,
    pub(crate) problem: Option<String>,
}

impl PasswordField {
    /// For a form that is shown the first time.
    pub(crate) async fn new(dashboard: &Dashboard, prover: Prover<'_>) -> Result<Self, Failure> {
        let is_proved = prover.is_proved(dashboard).await?;
        let person = prover.signed_in.person();
        Ok(Self {
            email: person
                .filter(|_| !is_proved)
                .map(|person| person.email.to_string()),
            is_unset: person.is_none() && !is_proved,
            problem: None,
        })
    }

    /// Checks the password of a form. Without a problem, the form may take effect.
    pub(crate) async fn check(
        dashboard: &Dashboard,
        prover: Prover<'_>,
        form: &mut Form,
    ) -> Result<Self, Failure> {
        Ok(match prover.prove(dashboard, form).await? {
            Proof::Given => Self::default(),
            Proof::Missing { email } => Self {
                email: Some(email),
                problem: Some("Enter your password.".to_owned()),
                ..Self::default()
            },
            Proof::Wrong { email, problem } => Self {
                email: Some(email),
                problem: Some(problem),
                ..Self::default()
            },
        })
    }
}
