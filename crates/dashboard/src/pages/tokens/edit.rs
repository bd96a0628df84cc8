//! Changing a token, whose secret stays.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::Permission;
use domain::ports::TokenRecord;
use engine::identity::accounts::{AccountError, MAX_TOKEN_NAME_CHARS};

use super::create::{LIFETIMES, Lifetime, offers, read, status};
use super::{HERE, TokenRow, find_own, network};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::permissions::Offer;
use crate::kit::session::{Admin, Posted};

/// The choice that leaves the expiry as it is.
const KEEP: &str = "keep";

#[derive(Template)]
#[template(path = "tokens/edit.html")]
struct EditPage {
    frame: Frame,
    token: TokenRow,
    typed: FormInput,
    offers: Vec<Offer>,
    lifetimes: Vec<Lifetime>,
    max_name_chars: usize,
}

pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
) -> Result<Response, Failure> {
    let token = find_own(&dashboard, &admin, &id).await?;
    let typed = as_typed(&token);
    Ok(page(&dashboard, &admin, token, typed))
}

pub(super) async fn change(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let token = find_own(&dashboard, &admin, &id).await?;
    let before = token.input();
    let mut typed = FormInput::from_form(&form, &["name", "route", "networks", "expires"]);
    let now = dashboard.engine.now();
    let Some(mut input) = read(&mut typed, &lifetimes(&token), now) else {
        return Ok(page(&dashboard, &admin, token, typed));
    };
    if typed.text("expires") == KEEP {
        input.expires = before.expires;
    }
    if input.exceeds(&before) {
        let question = Question {
            title: &format!("Change the token {}?", before.name),
            text: "It is allowed more than before.",
            button: "Save",
            back: HERE,
            is_dangerous: false,
        };
        admin
            .ask_for_password(&dashboard, &mut form, &question)
            .await?;
    }
    let accounts = &dashboard.engine.accounts;
    let (by, account) = (admin.by(), admin.account.id);
    match accounts.change_token(&by, account, token.id, input).await {
        Ok(()) => Ok(admin.redirect_saying(HERE, "changed")),
        Err(AccountError::Store(error)) => Err(error.into()),
        Err(_) => Err(Failure::NotFound(Box::new(admin.frame()))),
    }
}

fn page(dashboard: &Dashboard, admin: &Admin, token: TokenRecord, typed: FormInput) -> Response {
    let status = status(&typed);
    let page = EditPage {
        frame: admin.frame(),
        offers: offers(&typed),
        lifetimes: lifetimes(&token),
        token: TokenRow::new(token, dashboard.engine.now()),
        typed,
        max_name_chars: MAX_TOKEN_NAME_CHARS,
    };
    show_page(status, &page)
}

/// The lifetimes to choose from. They begin now.
fn lifetimes(token: &TokenRecord) -> Vec<Lifetime> {
    let keep = token.access.expires.map(|_| (KEEP, "As it is"));
    keep.into_iter().chain(LIFETIMES).collect()
}

/// The token in the fields of the form.
fn as_typed(token: &TokenRecord) -> FormInput {
    let access = &token.access;
    let routes: Vec<&str> = access.permissions.iter().map(Permission::name).collect();
    let networks: Vec<String> = access.allow.networks().iter().map(network).collect();
    let expires = access.expires.map_or("", |_| KEEP);
    FormInput::with_defaults(vec![
        ("name", access.name.clone()),
        ("route", routes.join(" ")),
        ("networks", networks.join("\n")),
        ("expires", expires.to_owned()),
    ])
}
