//! Creating a token.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::TokenRecord;
use domain::{AllowList, Permission, Permissions, Timestamp, TokenSecret};
use engine::identity::accounts::{MAX_TOKEN_NAME_CHARS, TokenInput, check_token_name};
use http::StatusCode;
use jiff::SignedDuration;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::FormInput;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::permissions::Offer;
use crate::kit::session::{Admin, Posted};

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
struct NewPage {
    frame: Frame,
    typed: FormInput,
    newest: u64,
    offers: Vec<Offer>,
    lifetimes: [(&'static str, &'static str); 5],
    max_name_chars: usize,
}

pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
) -> Result<Response, Failure> {
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    Ok(page(admin.frame(), FormInput::default(), newest(&tokens)))
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

fn page(frame: Frame, typed: FormInput, newest: u64) -> Response {
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
    name: &'a str,
    secret: &'a str,
    header: &'a str,
    base_url: &'a str,
}

/// Shows the secret in the response, because it cannot be shown again later.
pub(super) async fn create(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut typed = FormInput::from_form(&form, &["name", "route", "networks", "expires"]);
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    let order = read(&mut typed, dashboard.engine.now());
    let order = order.filter(|order| {
        let is_new = !is_repeated(&form, &order.name, &tokens);
        if !is_new {
            typed.refuse(
                "name",
                "This token was created already, and its secret was shown. If you lost it, delete the token. Send the form again only if you need another one",
            );
        }
        is_new
    });
    let Some(order) = order else {
        return Ok(page(admin.frame(), typed, newest(&tokens)));
    };
    let name = order.name.clone();
    let (_, secret): (_, TokenSecret) = accounts
        .create_token(&admin.by(), admin.account.id, order)
        .await?;
    let page = CreatedPage {
        frame: admin.frame(),
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
