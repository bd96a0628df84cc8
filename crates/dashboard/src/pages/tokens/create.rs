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
use crate::kit::page::{Frame, show as show_page};
use crate::kit::permissions::Offer;
use crate::kit::query::Query;
use crate::kit::session::{Admin, Operator, Posted};
use crate::pages::operator::find_account;

/// Lifetimes in days, and their labels. Empty means forever.
const LIFETIMES: [(&str, &str); 5] = [
    ("", "Never"),
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
];
/// The field with the newest token of the account when the form was opened.
const NEWEST: &str = "newest";

#[derive(Template)]
#[template(path = "tokens/new.html")]
struct NewPage<'a> {
    frame: Frame,
    place: &'a Place<'a>,
    typed: FormInput,
    newest: u64,
    offers: Vec<Offer>,
    lifetimes: [(&'static str, &'static str); 5],
    max_name_chars: usize,
}

/// Whose token is created.
struct Place<'a> {
    account: &'a AccountRecord,
    /// Whether an operator creates it for the account.
    is_for_other: bool,
    /// The page that leads here.
    back: String,
}

impl<'a> Place<'a> {
    fn own(account: &'a AccountRecord) -> Self {
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

/// The form. With `like`, the ID of a token, it is filled in like that token, which the new one is to replace.
pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    query: Query,
) -> Result<Response, Failure> {
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    let replaced = query.get("like").and_then(|id| id.parse().ok());
    let replaced = tokens.iter().find(|token| Some(token.id) == replaced);
    let typed = replaced.map_or_else(FormInput::default, like);
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

/// The input for another token like this one.
fn like(token: &TokenRecord) -> FormInput {
    let access = &token.access;
    let routes: Vec<&str> = access.permissions.iter().map(Permission::name).collect();
    let networks: Vec<String> = access.allow.networks().iter().map(super::network).collect();
    FormInput::with_defaults(vec![
        ("name", access.name.clone()),
        ("route", routes.join(" ")),
        ("networks", networks.join("\n")),
    ])
}

fn newest(tokens: &[TokenRecord]) -> u64 {
    let ids = tokens.iter().map(|token| token.id.get());
    ids.max().unwrap_or_default()
}

/// Whether the form was sent before: a token with this name was created after the form was opened. Reloading the page
/// with the secret sends the form again.
fn is_repeated(form: &Form, name: &str, tokens: &[TokenRecord]) -> bool {
    let opened_at = form.get(NEWEST).and_then(|id| id.parse::<u64>().ok());
    let Some(opened_at) = opened_at else {
        return false;
    };
    let is_later = |token: &TokenRecord| token.id.get() > opened_at && token.access.name == name;
    tokens.iter().any(is_later)
}

fn page(frame: Frame, place: &Place<'_>, typed: FormInput, newest: u64) -> Response {
    let status = if typed.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let offer = |permission: Permission| {
        Offer::new(permission, typed.is_ticked("route", permission.name()))
    };
    let page = NewPage {
        frame,
        place,
        offers: Permission::ALL.map(offer).into(),
        lifetimes: LIFETIMES,
        newest,
        max_name_chars: MAX_TOKEN_NAME_CHARS,
        typed,
    };
    show_page(status, &page)
}

#[derive(Template)]
#[template(path = "tokens/created.html")]
struct CreatedPage<'a> {
    frame: Frame,
    place: &'a Place<'a>,
    name: &'a str,
    secret: &'a str,
    header: &'a str,
    base_url: &'a str,
}

pub(super) async fn create(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let place = Place::own(&admin.account);
    create_at(&dashboard, &admin.by(), admin.frame(), &place, &form).await
}

/// Creates a token for another account, so the password is asked for.
pub(in crate::pages) async fn create_for_account(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let account = find_account(&dashboard, &operator, &id).await?;
    let place = Place::of(&account);
    let question = Question {
        title: &format!("Create a token for {}?", account.name),
        text: "Anyone who has the token can act for this account.",
        button: "Create",
        back: &place.back,
        is_dangerous: false,
    };
    operator
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    create_at(&dashboard, &operator.by(), operator.frame(), &place, &form).await
}

/// Shows the secret in the response, because it cannot be shown again later.
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
    let order = read(&mut typed, dashboard.engine.now());
    let order = order.filter(|order| {
        let is_new = !is_repeated(form, &order.name, &tokens);
        if !is_new {
            typed.refuse(
                "name",
                "This token was created already, and its secret was shown. If you lost it, delete the token. Send the form again only if you need another one",
            );
        }
        is_new
    });
    let Some(order) = order else {
        return Ok(page(frame, place, typed, newest(&tokens)));
    };
    let name = order.name.clone();
    let (_, secret): (_, TokenSecret) = accounts.create_token(by, place.account.id, order).await?;
    let page = CreatedPage {
        frame,
        place,
        name: &name,
        secret: secret.reveal(),
        header: &dashboard.settings.token_header,
        base_url: &dashboard.settings.base_url,
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Returns `None` if a field is invalid; `typed` then has the problem.
fn read(typed: &mut FormInput, now: Timestamp) -> Option<TokenInput> {
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
    let days = LIFETIMES.iter().find(is_offered).map(|(days, _)| *days);
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
            let order = read(&mut form, Timestamp::UNIX_EPOCH);
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
