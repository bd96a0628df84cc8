//! Creating a token.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::ports::{AccountRecord, TokenRecord};
use domain::{AllowList, Permission, Permissions, Timestamp, TokenSecret};
use engine::Actor;
use engine::identity::accounts::{MAX_TOKEN_NAME_CHARS, TokenInput, check_token_name};
use http::StatusCode;
use jiff::SignedDuration;

use super::HERE;
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::FormInput;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::permissions::Offer;
use crate::kit::session::{Admin, Operator, Posted, Session};
use crate::pages::operator::find_account;

/// Days and a label.
pub(super) type Lifetime = (&'static str, &'static str);
/// Lifetimes of new tokens. Empty means forever.
pub(super) const LIFETIMES: [Lifetime; 5] = [
    ("", "Never"),
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
];
/// The field with the newest token of the account when the form was opened.
pub(super) const NEWEST: &str = "newest";

pub(super) const REPEATED: &str = "This token was created already, and its secret was shown. If you lost it, delete the token. Send the form again only if you need another one";

#[derive(Template)]
#[template(path = "tokens/new.html")]
struct NewPage<'a> {
    frame: Frame,
    place: &'a Place<'a>,
    typed: FormInput,
    newest: u64,
    offers: Vec<Offer>,
    lifetimes: [Lifetime; 5],
    max_name_chars: usize,
}

/// Whose token is created.
pub(super) struct Place<'a> {
    account: &'a AccountRecord,
    /// Whether an operator creates it for the account.
    is_for_other: bool,
    /// The page that leads here.
    back: String,
}

impl<'a> Place<'a> {
    pub(super) fn own(account: &'a AccountRecord) -> Self {
        Self {
            account,
            is_for_other: false,
            back: HERE.to_owned(),
        }
    }

    fn of(account: &'a AccountRecord) -> Self {
        Self {
            account,
            is_for_other: true,
            back: format!("/dashboard/operator/accounts/{}", account.id),
        }
    }
}

pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
) -> Result<Response, Failure> {
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    let typed = FormInput::default();
    let place = Place::own(&admin.account);
    Ok(page(admin.frame(), &place, typed, newest(&tokens)))
}

pub(in crate::pages) async fn ask_for_account(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let account = find_account(&dashboard, &operator, &id).await?;
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(account.id)).await?;
    let place = Place::of(&account);
    let typed = FormInput::default();
    Ok(page(operator.frame(), &place, typed, newest(&tokens)))
}

pub(super) fn newest(tokens: &[TokenRecord]) -> u64 {
    let ids = tokens.iter().map(|token| token.id.get());
    ids.max().unwrap_or_default()
}

/// Whether the form was sent before: a token with this name was created after the form was opened. Reloading the page
/// with the secret sends the form again.
pub(super) fn is_repeated(form: &Form, name: &str, tokens: &[TokenRecord]) -> bool {
    let opened_at = form.get(NEWEST).and_then(|id| id.parse::<u64>().ok());
    let Some(opened_at) = opened_at else {
        return false;
    };
    let is_later = |token: &TokenRecord| token.id.get() > opened_at && token.access.name == name;
    tokens.iter().any(is_later)
}

fn page(frame: Frame, place: &Place<'_>, typed: FormInput, newest: u64) -> Response {
    let status = status(&typed);
    let page = NewPage {
        frame,
        place,
        offers: offers(&typed),
        lifetimes: LIFETIMES,
        newest,
        max_name_chars: MAX_TOKEN_NAME_CHARS,
        typed,
    };
    show_page(status, &page)
}

/// Of the page with this form.
pub(super) fn status(typed: &FormInput) -> StatusCode {
    if typed.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    }
}

/// All permissions; those in the form are ticked.
pub(super) fn offers(typed: &FormInput) -> Vec<Offer> {
    let offer = |permission: Permission| {
        Offer::new(permission, typed.is_ticked("route", permission.name()))
    };
    Permission::ALL.map(offer).into()
}

#[derive(Template)]
#[template(path = "tokens/created.html")]
struct CreatedPage<'a> {
    frame: Frame,
    place: &'a Place<'a>,
    name: &'a str,
    secret: &'a str,
    old: Option<OldToken>,
    header: &'a str,
    base_url: &'a str,
}

/// What happens to the token that the new one replaces.
pub(super) enum OldToken {
    Deleted,
    Until(Moment),
}

pub(super) async fn create(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let place = Place::own(&admin.account);
    ask_for_password(&dashboard, &admin, &place, &mut form).await?;
    create_at(&dashboard, &admin.by(), admin.frame(), &place, &form).await
}

/// Creates a token for another account.
pub(in crate::pages) async fn create_for_account(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let account = find_account(&dashboard, &operator, &id).await?;
    let place = Place::of(&account);
    ask_for_password(&dashboard, &operator, &place, &mut form).await?;
    create_at(&dashboard, &operator.by(), operator.frame(), &place, &form).await
}

/// An open session alone must not be enough to get a token, which outlives it.
async fn ask_for_password(
    dashboard: &Dashboard,
    session: &Session,
    place: &Place<'_>,
    form: &mut Form,
) -> Result<(), Failure> {
    let question = Question {
        title: &format!("Create a token for {}?", place.account.name),
        text: "Anyone who has the token can act for this account.",
        button: "Create",
        back: &place.back,
        is_dangerous: false,
    };
    session.ask_for_password(dashboard, form, &question).await
}

async fn create_at(
    dashboard: &Dashboard,
    by: &Actor,
    frame: Frame,
    place: &Place<'_>,
    form: &Form,
) -> Result<Response, Failure> {
    let mut typed = FormInput::from_form(form, &["name", "route", "networks", "expires"]);
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(place.account.id)).await?;
    let order = read(&mut typed, &LIFETIMES, dashboard.engine.now());
    let order = order.filter(|order| {
        let is_new = !is_repeated(form, &order.name, &tokens);
        if !is_new {
            typed.refuse("name", REPEATED);
        }
        is_new
    });
    let Some(order) = order else {
        return Ok(page(frame, place, typed, newest(&tokens)));
    };
    let name = order.name.clone();
    let (_, secret): (_, TokenSecret) = accounts.create_token(by, place.account.id, order).await?;
    Ok(created(dashboard, frame, place, &name, &secret, None))
}

/// Shows the secret in the response, because it cannot be shown again later.
pub(super) fn created(
    dashboard: &Dashboard,
    frame: Frame,
    place: &Place<'_>,
    name: &str,
    secret: &TokenSecret,
    old: Option<OldToken>,
) -> Response {
    let page = CreatedPage {
        frame,
        place,
        name,
        secret: secret.reveal(),
        old,
        header: &dashboard.settings.token_header,
        base_url: &dashboard.settings.base_url,
    };
    show_page(StatusCode::OK, &page)
}

/// Returns `None` if a field is invalid; `typed` then has the problem.
pub(super) fn read(
    typed: &mut FormInput,
    lifetimes: &[Lifetime],
    now: Timestamp,
) -> Option<TokenInput> {
    if let Err(problem) = check_token_name(typed.text("name")) {
        typed.refuse("name", problem);
    }
    let permissions = Permissions::from_names(typed.text("route")).unwrap_or_default();
    if permissions == Permissions::default() {
        typed.refuse("route", "Tick what the token may do");
    }
    let networks = typed.text("networks").replace([',', ';'], " ");
    let allow = networks.parse::<AllowList>().unwrap_or_else(|problem| {
        typed.refuse("networks", problem);
        AllowList::default()
    });
    let is_offered = |(days, _): &&(&str, &str)| *days == typed.text("expires");
    let days = lifetimes.iter().find(is_offered).map(|(days, _)| *days);
    if days.is_none() {
        typed.refuse("expires", "Choose one of these");
    }
    if typed.is_refused() {
        return None;
    }
    let lifetime = days.and_then(|days| days.parse::<i64>().ok());
    Some(TokenInput {
        name: typed.text("name").to_owned(),
        permissions,
        allow,
        expires: lifetime.map(|days| now + SignedDuration::from_hours(24 * days)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str, route: &str, networks: &str, expires: &str) -> FormInput {
        let fields = [
            ("name", name),
            ("route", route),
            ("networks", networks),
            ("expires", expires),
        ];
        FormInput::with_defaults(fields.map(|(name, text)| (name, text.to_owned())).into())
    }

    #[test]
    fn each_field_is_checked() {
        for (mut form, refused) in [
            (typed("a", "sms:send", "", ""), None),
            (
                typed("a", "sms:send sms:rates", "192.0.2.1, 2001:db8::/32", "30"),
                None,
            ),
            (typed("", "sms:send", "", ""), Some("name")),
            (typed("a", "", "", ""), Some("route")),
            (typed("a", "sms:all", "", ""), Some("route")),
            (typed("a", "sms:send", "here", ""), Some("networks")),
            (typed("a", "sms:send", "", "9"), Some("expires")),
        ] {
            let order = read(&mut form, &LIFETIMES, Timestamp::UNIX_EPOCH);
            assert_eq!(order.is_none(), refused.is_some());
            for field in ["name", "route", "networks", "expires"] {
                assert_eq!(
                    form.problem(field).is_some(),
                    refused == Some(field),
                    "{field}"
                );
            }
        }
    }
}
