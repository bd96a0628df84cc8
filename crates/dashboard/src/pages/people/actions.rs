//! What is done about people: each form of the page.

use domain::person::{Email, Role};
use domain::{AccountId, PersonId};
use engine::identity::accounts::AccountError;
use engine::identity::people::{Invited, ManageError, Reach};

use super::{Dashboard, Failure, Frame, Link, Typed, Visitor};
use crate::kit::form::Form;

/// What a form led to.
pub(super) struct Done {
    pub(super) frame: Frame,
    pub(super) link: Option<Link>,
    pub(super) typed: Typed,
    pub(super) is_refused: bool,
}

impl Done {
    /// Nothing was asked for.
    pub(super) fn nothing(frame: Frame) -> Self {
        Self {
            frame,
            link: None,
            typed: Typed::default(),
            is_refused: false,
        }
    }

    fn said(visitor: &Visitor, text: String) -> Self {
        Self::nothing(visitor.frame().saying(text))
    }

    fn refused(visitor: &Visitor, text: String) -> Self {
        Self {
            is_refused: true,
            ..Self::nothing(visitor.frame().refusing(text))
        }
    }
}

/// Why a form changed nothing: words for the person, or another page.
enum Stopped {
    Words(String),
    Failure(Failure),
}

impl From<ManageError> for Stopped {
    fn from(error: ManageError) -> Self {
        match error {
            ManageError::Store(error) => Self::Failure(error.into()),
            ManageError::Known(person) => Self::Words(format!(
                "{} can sign in already, as {}. For a new password, make a link in the list.",
                person.email, person.role
            )),
            other => {
                let text = other.to_string();
                let mut letters = text.chars();
                let first = letters.next().map(|c| c.to_ascii_uppercase());
                Self::Words(first.into_iter().chain(letters).chain(['.']).collect())
            }
        }
    }
}

/// Does what a form asks for.
pub(super) async fn act(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    mut form: Form,
) -> Result<Done, Failure> {
    let action = form.take("action");
    if action == "invite" {
        return invite(dashboard, visitor, reach, form).await;
    }
    let done = match action.as_str() {
        "withdraw" => withdraw(dashboard, visitor, reach, &form).await,
        "reset" => reset(dashboard, visitor, reach, &form).await,
        "role" => set_role(dashboard, visitor, reach, &form).await,
        "remove" => remove(dashboard, visitor, reach, &form).await,
        "remove-from" => remove_from(dashboard, visitor, reach, &form).await,
        "remove-second-factor" => remove_second_factor(dashboard, visitor, reach, &form).await,
        _ => return Err(Failure::Form),
    };
    match done {
        Ok(done) => Ok(done),
        Err(Stopped::Words(text)) => Ok(Done::refused(visitor, text)),
        Err(Stopped::Failure(failure)) => Err(failure),
    }
}

/// The form for an invitation comes back as it was typed when something is wrong with it.
async fn invite(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    mut form: Form,
) -> Result<Done, Failure> {
    let mut typed = Typed {
        email: form.take("email"),
        role: form.take("role"),
        account: form.take("account"),
        problem: None,
    };
    let invited = async {
        let email: Email = typed
            .email
            .parse()
            .map_err(|_| Stopped::Words("Write it like ann@example.com.".to_owned()))?;
        let role = role(&typed.role)?;
        let account = account(dashboard, reach, role, &typed.account).await?;
        let people = &dashboard.engine.people;
        let by = visitor.by();
        let invited = people.invite_within(&by, reach, email.clone(), role, account);
        Ok(link(dashboard, &email, &invited.await?))
    };
    match invited.await {
        Ok(link) => Ok(Done {
            link: Some(link),
            ..Done::nothing(visitor.frame())
        }),
        Err(Stopped::Words(problem)) => {
            typed.problem = Some(problem);
            Ok(Done {
                typed,
                is_refused: true,
                ..Done::nothing(visitor.frame())
            })
        }
        Err(Stopped::Failure(failure)) => Err(failure),
    }
}

async fn withdraw(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    form: &Form,
) -> Result<Done, Stopped> {
    let email = form.get("email").and_then(|email| email.parse().ok());
    let email: Email = email.ok_or(Stopped::Failure(Failure::Form))?;
    let people = &dashboard.engine.people;
    let account = form.get("account").and_then(|id| id.parse().ok());
    people
        .withdraw_invitations(&visitor.by(), reach, &email, account)
        .await?;
    let text = format!("The link for {email} works no longer.");
    Ok(Done::said(visitor, text))
}

async fn reset(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    form: &Form,
) -> Result<Done, Stopped> {
    let people = &dashboard.engine.people;
    let made = people.reset(&visitor.by(), reach, person(form)?).await?;
    let (person, invited) = made;
    Ok(Done {
        link: Some(link(dashboard, &person.email, &invited)),
        ..Done::nothing(visitor.frame())
    })
}

async fn set_role(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    form: &Form,
) -> Result<Done, Stopped> {
    let role = role(form.get("role").unwrap_or_default())?;
    let name = form.get("account").unwrap_or_default();
    let account = account(dashboard, reach, role, name).await?;
    let people = &dashboard.engine.people;
    let changed = people
        .set_role(&visitor.by(), reach, person(form)?, role, account)
        .await?;
    let text = format!("{} is {role} now.", changed.email);
    Ok(Done::said(visitor, text))
}

async fn remove(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    form: &Form,
) -> Result<Done, Stopped> {
    let people = &dashboard.engine.people;
    let removed = people.remove(&visitor.by(), reach, person(form)?).await?;
    let text = match reach {
        Reach::Everybody => format!("{} can no longer sign in.", removed.email),
        Reach::Account(_) => format!("{} no longer belongs to this account.", removed.email),
    };
    Ok(Done::said(visitor, text))
}

async fn remove_from(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    form: &Form,
) -> Result<Done, Stopped> {
    only_operators(visitor, reach)?;
    let account = form.get("account").and_then(|id| id.parse().ok());
    let account: AccountId = account.ok_or(Stopped::Failure(Failure::Form))?;
    let people = &dashboard.engine.people;
    let by = visitor.by();
    let removed = people.remove_from(&by, person(form)?, account);
    let text = format!(
        "{} no longer belongs to that account.",
        removed.await?.email
    );
    Ok(Done::said(visitor, text))
}

fn only_operators(visitor: &Visitor, reach: Reach) -> Result<(), Stopped> {
    match reach {
        Reach::Everybody => Ok(()),
        Reach::Account(_) => {
            let frame = Box::new(visitor.frame());
            Err(Stopped::Failure(Failure::NotYours(frame)))
        }
    }
}

async fn remove_second_factor(
    dashboard: &Dashboard,
    visitor: &Visitor,
    reach: Reach,
    form: &Form,
) -> Result<Done, Stopped> {
    only_operators(visitor, reach)?;
    let people = &dashboard.engine.people;
    let person = people
        .remove_second_factor(&visitor.by(), person(form)?)
        .await?;
    let text = format!("{} signs in by password alone now.", person.email);
    Ok(Done::said(visitor, text))
}

fn person(form: &Form) -> Result<PersonId, Stopped> {
    let id = form.get("person").and_then(|id| id.parse().ok());
    id.ok_or(Stopped::Failure(Failure::Form))
}

fn role(name: &str) -> Result<Role, Stopped> {
    name.parse()
        .map_err(|_| Stopped::Words("Choose a role.".to_owned()))
}

/// An admin's people are of the admin's account; an operator names one, which another operator may do without.
async fn account(
    dashboard: &Dashboard,
    reach: Reach,
    role: Role,
    name: &str,
) -> Result<Option<AccountId>, Stopped> {
    if let Reach::Account(account) = reach {
        return Ok(Some(account));
    }
    match name.trim() {
        "" if role == Role::Operator => Ok(None),
        "" => Err(ManageError::NoAccount.into()),
        name => match dashboard.engine.accounts.get(name).await {
            Ok(account) => Ok(Some(account.id)),
            Err(AccountError::Store(error)) => Err(Stopped::Failure(error.into())),
            Err(_) => Err(Stopped::Words(
                "There is no account of this name.".to_owned(),
            )),
        },
    }
}

fn link(dashboard: &Dashboard, email: &Email, invited: &Invited) -> Link {
    let base = &dashboard.settings.dashboard_url;
    Link {
        email: email.to_string(),
        address: format!("{base}/dashboard/invitation/{}", invited.link),
        until: invited.expires.into(),
    }
}
