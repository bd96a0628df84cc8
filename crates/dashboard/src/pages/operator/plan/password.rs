//! The field for the password within a form. Such forms have secrets, which a page that asks afterwards would have to
//! repeat.

use crate::Dashboard;
use crate::kit::confirm::Proof;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::session::Operator;

#[derive(Default)]
pub(super) struct PasswordField {
    /// Whose password is asked for; nobody's if it was entered within the last minutes.
    pub(super) email: Option<String>,
    /// The operator of the first start must set a password before.
    pub(super) is_unset: bool,
    pub(super) problem: Option<String>,
}

impl PasswordField {
    /// For a form that is shown the first time.
    pub(super) async fn new(dashboard: &Dashboard, operator: &Operator) -> Result<Self, Failure> {
        let is_proved = dashboard.engine.own.is_proved(&operator.secret).await?;
        let person = operator.signed_in.person();
        Ok(Self {
            email: person
                .filter(|_| !is_proved)
                .map(|person| person.email.to_string()),
            is_unset: person.is_none() && !is_proved,
            problem: None,
        })
    }

    /// Checks the password of a form. Without a problem, the form may take effect.
    pub(super) async fn check(
        dashboard: &Dashboard,
        operator: &Operator,
        form: &mut Form,
    ) -> Result<Self, Failure> {
        Ok(match operator.prove(dashboard, form).await? {
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
