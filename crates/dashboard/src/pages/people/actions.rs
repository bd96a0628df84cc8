//! The forms of the page: invite, withdraw, reset, change the role, remove.

use domain::person::{Email, Role};
use domain::{AccountId, PersonId};
use engine::identity::accounts::AccountError;
use engine::identity::people::{Invited, LinkKind, ManageError, PeopleScope, send_link};

use super::{Dashboard, Failure, Frame, InviteForm, Link, Session};
use crate::kit::confirm::Question;
use crate::kit::form::Form;

pub(super) struct FormResult {
    pub(super) frame: Frame,
    pub(super) link: Option<Link>,
    pub(super) typed: InviteForm,
    pub(super) is_refused: bool,
}

impl FormResult {
    pub(super) fn nothing(frame: Frame) -> Self {
        Self {
            frame,
            link: None,
            typed: InviteForm::default(),
            is_refused: false,
        }
    }

    fn succeeded(session: &Session, text: String) -> Self {
        Self::nothing(session.frame().with_success(text))
    }

    fn refused(session: &Session, text: String) -> Self {
        Self {
            is_refused: true,
            ..Self::nothing(session.frame().with_problem(text))
        }
    }
}

/// Why a form changed nothing: a message, or another page.
enum Refused {
    Words(String),
    Failure(Failure),
}

impl From<ManageError> for Refused {
    fn from(error: ManageError) -> Self {
        match error {
            ManageError::Store(error) => Self::Failure(error.into()),
            ManageError::Known(person) => Self::Words(format!(
                "{} can sign in already, as {}. For a new password, create a link in the list.",
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

pub(super) async fn run(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    mut form: Form,
) -> Result<FormResult, Failure> {
    if form.get("action") == Some("remove-second-factor")
        && let Err(Refused::Failure(failure)) = only_operators(session, scope)
    {
        return Err(failure);
    }
    ask(dashboard, session, scope, &mut form).await?;
    let action = form.take("action");
    if action == "invite" {
        return invite(dashboard, session, scope, form).await;
    }
    let done = match action.as_str() {
        "withdraw" => withdraw(dashboard, session, scope, &form).await,
        "reset" => reset(dashboard, session, scope, &form).await,
        "role" => set_role(dashboard, session, scope, &form).await,
        "remove" => remove(dashboard, session, scope, &form).await,
        "remove-from" => remove_from(dashboard, session, scope, &form).await,
        "remove-second-factor" => remove_second_factor(dashboard, session, scope, &form).await,
        _ => return Err(Failure::Form),
    };
    match done {
        Ok(done) => Ok(done),
        Err(Refused::Words(text)) => Ok(FormResult::refused(session, text)),
        Err(Refused::Failure(failure)) => Err(failure),
    }
}

/// Asks for the password before changes to who can sign in, and whether the person is sure before they remove
/// something.
async fn ask(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    form: &mut Form,
) -> Result<(), Failure> {
    let text_of = |name| form.get(name).unwrap_or_default();
    let who = match text_of("who") {
        "" => "this person".to_owned(),
        who => who.to_owned(),
    };
    let (title, text, button) = match text_of("action") {
        "invite" => (
            format!("Invite {}?", text_of("email")),
            format!("The link lets them sign in as {}.", text_of("role")),
            "Create a link",
        ),
        "reset" => (
            format!("Create a link for a new password of {who}?"),
            "Anyone who has the link can set the password.".to_owned(),
            "Create a link",
        ),
        "role" => (
            format!("Change the role of {who}?"),
            format!("The new role is {}.", text_of("role")),
            "Save",
        ),
        "remove-second-factor" => (
            format!("Remove the second factor of {who}?"),
            "Their password alone is then enough to sign in.".to_owned(),
            "Remove second factor",
        ),
        "remove-from" => (
            format!("Remove {who} from the account {}?", text_of("account_name")),
            "They can no longer work with it, and AI clients that they connected to it are disconnected."
                .to_owned(),
            "Remove",
        ),
        "withdraw" => (
            format!("Withdraw the link for {}?", text_of("email")),
            "It no longer works. You can create another one.".to_owned(),
            "Withdraw",
        ),
        "remove" => (
            format!("Remove {who}?"),
            "They are signed out at once, and AI clients that they connected are disconnected."
                .to_owned(),
            "Remove",
        ),
        _ => return Ok(()),
    };
    let is_removal = text_of("action").starts_with("remove") || text_of("action") == "withdraw";
    let is_about_signing_in = !is_removal || text_of("action") == "remove-second-factor";
    let question = Question {
        title: &title,
        text: &text,
        button,
        back: match scope {
            PeopleScope::Everybody => super::ALL.path,
            PeopleScope::Account(_) => super::OWN.path,
        },
        is_dangerous: is_removal,
    };
    if is_about_signing_in {
        session.ask_for_password(dashboard, form, &question).await
    } else {
        session.ask(form, &question)
    }
}

/// An invalid form is shown again with its values.
async fn invite(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    mut form: Form,
) -> Result<FormResult, Failure> {
    let mut typed = InviteForm {
        email: form.take("email"),
        role: form.take("role"),
        account: form.take("account"),
        problem: None,
    };
    let invited = async {
        let email = typed.email.parse::<Email>();
        let role = role(&typed.role)?;
        let account = account(dashboard, scope, role, &typed.account).await;
        let Ok(email) = email else {
            let mut words = "Write the email address like ann@example.com.".to_owned();
            if let Err(Refused::Words(more)) = account {
                words = format!("{words} {more}");
            }
            return Err(Refused::Words(words));
        };
        let account = account?;
        let people = &dashboard.engine.people;
        let by = session.by();
        let invited = people.invite_within(&by, scope, email.clone(), role, account);
        Ok(link(dashboard, &email, LinkKind::Invitation, &invited.await?).await)
    };
    match invited.await {
        Ok(link) => Ok(FormResult {
            link: Some(link),
            ..FormResult::nothing(session.frame())
        }),
        Err(Refused::Words(problem)) => {
            typed.problem = Some(problem);
            Ok(FormResult {
                typed,
                is_refused: true,
                ..FormResult::nothing(session.frame())
            })
        }
        Err(Refused::Failure(failure)) => Err(failure),
    }
}

async fn withdraw(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    form: &Form,
) -> Result<FormResult, Refused> {
    let email = form.get("email").and_then(|email| email.parse().ok());
    let email: Email = email.ok_or(Refused::Failure(Failure::Form))?;
    let people = &dashboard.engine.people;
    let account = form.get("account").and_then(|id| id.parse().ok());
    people
        .withdraw_invitations(&session.by(), scope, &email, account)
        .await?;
    let text = format!("The link for {email} no longer works.");
    Ok(FormResult::succeeded(session, text))
}

async fn reset(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    form: &Form,
) -> Result<FormResult, Refused> {
    let people = &dashboard.engine.people;
    let made = people.reset(&session.by(), scope, person(form)?).await?;
    let (person, invited) = made;
    Ok(FormResult {
        link: Some(link(dashboard, &person.email, LinkKind::NewPassword, &invited).await),
        ..FormResult::nothing(session.frame())
    })
}

async fn set_role(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    form: &Form,
) -> Result<FormResult, Refused> {
    let role = role(form.get("role").unwrap_or_default())?;
    let name = form.get("account").unwrap_or_default();
    let account = account(dashboard, scope, role, name).await?;
    let people = &dashboard.engine.people;
    let changed = people
        .set_role(&session.by(), scope, person(form)?, role, account)
        .await?;
    let text = format!("{} is {role} now.", changed.email);
    Ok(FormResult::succeeded(session, text))
}

async fn remove(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    form: &Form,
) -> Result<FormResult, Refused> {
    let people = &dashboard.engine.people;
    let removed = people.remove(&session.by(), scope, person(form)?).await?;
    let text = match scope {
        PeopleScope::Everybody => format!("{} can no longer sign in.", removed.email),
        PeopleScope::Account(_) => format!("{} no longer belongs to this account.", removed.email),
    };
    Ok(FormResult::succeeded(session, text))
}

async fn remove_from(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    form: &Form,
) -> Result<FormResult, Refused> {
    only_operators(session, scope)?;
    let account = form.get("account").and_then(|id| id.parse().ok());
    let account: AccountId = account.ok_or(Refused::Failure(Failure::Form))?;
    let people = &dashboard.engine.people;
    let by = session.by();
    let removed = people.remove_from(&by, person(form)?, account);
    let text = format!(
        "{} no longer belongs to that account.",
        removed.await?.email
    );
    Ok(FormResult::succeeded(session, text))
}

fn only_operators(session: &Session, scope: PeopleScope) -> Result<(), Refused> {
    match scope {
        PeopleScope::Everybody => Ok(()),
        PeopleScope::Account(_) => {
            let frame = Box::new(session.frame());
            Err(Refused::Failure(Failure::NotYours(frame)))
        }
    }
}

async fn remove_second_factor(
    dashboard: &Dashboard,
    session: &Session,
    scope: PeopleScope,
    form: &Form,
) -> Result<FormResult, Refused> {
    only_operators(session, scope)?;
    let people = &dashboard.engine.people;
    let person = people
        .remove_second_factor(&session.by(), person(form)?)
        .await?;
    let text = format!("{} now signs in with a password only.", person.email);
    Ok(FormResult::succeeded(session, text))
}

fn person(form: &Form) -> Result<PersonId, Refused> {
    let id = form.get("person").and_then(|id| id.parse().ok());
    id.ok_or(Refused::Failure(Failure::Form))
}

fn role(name: &str) -> Result<Role, Refused> {
    name.parse()
        .map_err(|_| Refused::Words("Choose a role.".to_owned()))
}

/// Admins invite into their own account. Operators name an account, except for another operator.
async fn account(
    dashboard: &Dashboard,
    scope: PeopleScope,
    role: Role,
    name: &str,
) -> Result<Option<AccountId>, Refused> {
    if let PeopleScope::Account(account) = scope {
        return Ok(Some(account));
    }
    match name.trim() {
        "" if role == Role::Operator => Ok(None),
        "" => Err(ManageError::NoAccount.into()),
        name => match dashboard.engine.accounts.get(name).await {
            Ok(account) => Ok(Some(account.id)),
            Err(AccountError::Store(error)) => Err(Refused::Failure(error.into())),
            Err(_) => Err(Refused::Words(
                "There is no account with this name.".to_owned(),
            )),
        },
    }
}

/// The link to show. It is also sent by e-mail, if that is configured.
async fn link(dashboard: &Dashboard, email: &Email, kind: LinkKind, invited: &Invited) -> Link {
    let base = &dashboard.settings.dashboard_url;
    let address = format!("{base}/dashboard/invitation/{}", invited.link);
    let mailed = match &dashboard.engine.mailer {
        Some(mailer) => Some(send_link(&**mailer, email, kind, &address, invited.expires).await),
        None => None,
    };
    Link {
        email: email.to_string(),
        address,
        until: invited.expires.into(),
        mailed,
    }
}
