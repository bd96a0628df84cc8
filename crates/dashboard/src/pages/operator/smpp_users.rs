//! SMPP users: what customers bind with.
//!
//! The password of a user is only in the response to the form that created it.

mod fields;
pub(super) mod user;

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::AccountRecord;
use domain::smpp_user::{BindKinds, SmppUser};
use engine::identity::accounts::AccountError;
use engine::identity::smpp_users::{SmppUserError, SmppUserInput};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::FormInput;
use crate::kit::format::{Moment, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

use fields::Choices;

const HERE: &str = "/dashboard/operator/smpp-users";
const ACCOUNT: &str = "account";
const SYSTEM_ID: &str = "system_id";
const LONG: &str = "long_password";
const FIELDS: [&str; 3] = [ACCOUNT, SYSTEM_ID, LONG];
/// The field with the newest user when the form was opened.
const NEWEST: &str = "newest";
/// Only so many users are shown; the command line lists all.
const SHOWN: usize = 500;

#[derive(Template)]
#[template(path = "operator/smpp_users.html")]
struct UsersPage {
    frame: Frame,
    input: FormInput,
    choices: Choices,
    newest: u64,
    rows: Vec<UserRow>,
    /// How many users are not shown.
    hidden: Option<String>,
}

struct UserRow {
    id: u64,
    system_id: String,
    account: u64,
    account_name: String,
    networks: Vec<String>,
    senders: Vec<String>,
    countries: String,
    /// Sessions at the moment, over all nodes.
    bound: u32,
    max_binds: Option<u32>,
    max_per_second: Option<u32>,
    /// The kinds of bind, if not all are allowed.
    binds: Option<String>,
    created: Moment,
}

impl UserRow {
    fn new(user: &SmppUser, bound: u32) -> Self {
        let (access, limits) = (&user.access, &user.limits);
        let senders = access.limits.senders.as_slice().iter();
        let networks = access.allow.networks().iter();
        Self {
            id: user.id.get(),
            system_id: user.system_id.to_string(),
            account: access.account.get(),
            account_name: access.account_name.clone(),
            networks: networks.map(ToString::to_string).collect(),
            senders: senders.map(ToString::to_string).collect(),
            countries: access.limits.countries.to_string(),
            bound,
            max_binds: limits.max_binds,
            max_per_second: limits.max_per_second,
            binds: (limits.binds != BindKinds::all()).then(|| limits.binds.to_string()),
            created: user.created_at.into(),
        }
    }
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let frame = match operator.said(&query) {
        Some("revoked") => operator
            .frame()
            .with_success("Revoked. The user’s sessions end within a second."),
        _ => operator.frame(),
    };
    let mut input = fields::defaults();
    input.push((ACCOUNT, query.text(ACCOUNT).to_owned()));
    let input = FormInput::with_defaults(input);
    page(&dashboard, frame, input).await
}

async fn page(dashboard: &Dashboard, frame: Frame, input: FormInput) -> Result<Response, Failure> {
    let status = if input.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let users = dashboard.engine.smpp_user_registry.list(None).await?;
    let binds = dashboard.engine.smpp_user_registry.count_binds().await?;
    let row = |user: &SmppUser| UserRow::new(user, binds.get(&user.id).copied().unwrap_or(0));
    let hidden = users.len().saturating_sub(SHOWN);
    let page = UsersPage {
        frame,
        input,
        choices: Choices::new(),
        newest: users.last().map_or(0, |user| user.id.get()),
        rows: users.iter().rev().take(SHOWN).map(row).collect(),
        hidden: (hidden > 0).then(|| count(hidden as u64)),
    };
    Ok(show_page(status, &page))
}

#[derive(Template)]
#[template(path = "operator/smpp_user_created.html")]
struct CreatedPage<'a> {
    frame: Frame,
    account_name: &'a str,
    system_id: &'a str,
    password: &'a str,
}

/// Shows the password in the response, because it cannot be shown again later.
pub(super) async fn create(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let mut input = FormInput::from_form(&form, &[&FIELDS[..], &fields::OPTIONS].concat());
    let Some((account, order)) = read(&dashboard, &form, &mut input).await? else {
        return page(&dashboard, operator.frame(), input).await;
    };
    let question = Question {
        title: &format!("Create an SMPP user for {}?", account.name),
        text: "Anyone who has the password can send for this account.",
        button: "Create",
        back: HERE,
        is_dangerous: false,
    };
    operator
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let users = &dashboard.engine.smpp_user_registry;
    let (system_id, password) = match users.create(&operator.by(), account.id, order).await {
        Ok(created) => created,
        Err(SmppUserError::Store(error)) => return Err(error.into()),
        Err(SmppUserError::Busy(busy)) => return Err(busy.into()),
        Err(problem) => {
            input.refuse(SYSTEM_ID, problem);
            return page(&dashboard, operator.frame(), input).await;
        }
    };
    let page = CreatedPage {
        frame: operator.frame(),
        account_name: &account.name,
        system_id: system_id.as_str(),
        password: password.reveal(),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Reads the fields of a user. Invalid ones get a problem.
async fn read(
    dashboard: &Dashboard,
    form: &Form,
    input: &mut FormInput,
) -> Result<Option<(AccountRecord, SmppUserInput)>, Failure> {
    let account = match dashboard.engine.accounts.get(input.text(ACCOUNT)).await {
        Err(AccountError::Store(error)) => return Err(error.into()),
        account => account.ok(),
    };
    let order = read_input(input);
    let Some(account) = account else {
        input.refuse(ACCOUNT, "there is no account of this name; see Accounts");
        return Ok(None);
    };
    let users = &dashboard.engine.smpp_user_registry;
    let users = users.list(Some(account.id)).await?;
    if is_repeated(form, &users) {
        let problem = "A user of this account was created after this form was opened, and its password was shown. \
            If you lost it, revoke the user. Send the form again only if you need another one";
        input.refuse(SYSTEM_ID, problem);
    }
    if input.is_refused() {
        return Ok(None);
    }
    Ok(Some((account, order)))
}

/// Reloading the page with the password sends the form again.
fn is_repeated(form: &Form, users: &[SmppUser]) -> bool {
    let opened_at = form.get(NEWEST).and_then(|id| id.parse::<u64>().ok());
    opened_at.is_some_and(|opened_at| users.iter().any(|user| user.id.get() > opened_at))
}

fn read_input(input: &mut FormInput) -> SmppUserInput {
    let system_id = match input.given(SYSTEM_ID).map(str::parse).transpose() {
        Ok(system_id) => system_id,
        Err(problem) => {
            input.refuse(SYSTEM_ID, problem);
            None
        }
    };
    SmppUserInput {
        system_id,
        long_password: input.given(LONG).is_some(),
        options: fields::read(input),
    }
}

pub(super) async fn revoke(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let system_id = form.get(SYSTEM_ID).unwrap_or_default().parse();
    let system_id = system_id.map_err(|_| Failure::Form)?;
    let question = Question {
        title: &format!("Revoke the SMPP user {system_id}?"),
        text: "Its sessions end within a second, and it cannot bind any more. This cannot be undone; a new user has a new password.",
        button: "Revoke",
        back: HERE,
        is_dangerous: true,
    };
    operator.ask(&form, &question)?;
    let users = &dashboard.engine.smpp_user_registry;
    match users.revoke(&operator.by(), &system_id).await {
        // Somebody else may have revoked it already.
        Ok(()) | Err(SmppUserError::Unknown(_)) => {}
        Err(SmppUserError::Store(error)) => return Err(error.into()),
        Err(_) => return Err(Failure::Form),
    }
    Ok(operator.redirect_saying(HERE, "revoked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_id_is_checked() {
        for (text, is_refused) in [("", false), ("acme", false), ("longer than fifteen", true)] {
            let mut input = FormInput::with_defaults(vec![(SYSTEM_ID, text.to_owned())]);
            read_input(&mut input);
            assert_eq!(input.problem(SYSTEM_ID).is_some(), is_refused, "{text}");
            assert_eq!(input.is_refused(), is_refused, "{text}");
        }
    }
}
