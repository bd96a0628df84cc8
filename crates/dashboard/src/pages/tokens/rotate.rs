//! Replacing a token by one with a new secret. The old one works for a while.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::ports::TokenRecord;
use engine::identity::accounts::{AccountError, rotated_expiry};
use jiff::SignedDuration;

use super::create::{self, OldToken, Place, REPEATED, is_repeated, newest};
use super::{HERE, TokenRow, find_own};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::format::Moment;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::{Admin, Posted};

/// How many hours the old token still works, and a label.
const GRACES: [(&str, &str); 4] = [
    ("0", "No longer"),
    ("1", "For 1 hour"),
    ("24", "For 24 hours"),
    ("168", "For 7 days"),
];
const USUAL_GRACE: &str = "24";

#[derive(Template)]
#[template(path = "tokens/rotate_token.html")]
struct RotatePage {
    frame: Frame,
    token: TokenRow,
    /// Of the new token.
    expires: Option<Moment>,
    newest: u64,
    typed: FormInput,
    graces: [(&'static str, &'static str); 4],
}

pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
) -> Result<Response, Failure> {
    let token = find_own(&dashboard, &admin, &id).await?;
    let typed = FormInput::with_defaults(vec![("grace", USUAL_GRACE.to_owned())]);
    page(&dashboard, &admin, token, typed).await
}

pub(super) async fn rotate(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    admin: Admin,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let token = find_own(&dashboard, &admin, &id).await?;
    let accounts = &dashboard.engine.accounts;
    let mut typed = FormInput::from_form(&form, &["grace"]);
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    let name = token.access.name.clone();
    if is_repeated(&form, &name, &tokens) {
        typed.refuse("grace", REPEATED);
    }
    let is_offered = GRACES
        .iter()
        .any(|(hours, _)| *hours == typed.text("grace"));
    let Some(hours) = typed
        .text("grace")
        .parse::<i64>()
        .ok()
        .filter(|_| is_offered)
    else {
        typed.refuse("grace", "Choose one of these");
        return page(&dashboard, &admin, token, typed).await;
    };
    if typed.is_refused() {
        return page(&dashboard, &admin, token, typed).await;
    }
    let question = Question {
        title: &format!("Rotate the token {name}?"),
        text: "Anyone who has the token can act for this account.",
        button: "Rotate",
        back: HERE,
        is_dangerous: false,
    };
    admin
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let grace = (hours > 0).then(|| SignedDuration::from_hours(hours));
    let (by, account) = (admin.by(), admin.account.id);
    let rotated = match accounts.rotate_token(&by, account, token.id, grace).await {
        Ok(rotated) => rotated,
        Err(AccountError::Store(error)) => return Err(error.into()),
        Err(_) => return Err(Failure::NotFound(Box::new(admin.frame()))),
    };
    let old = match rotated.old_until {
        Some(time) => OldToken::Until(time.into()),
        None => OldToken::Deleted,
    };
    let (frame, place) = (admin.frame(), Place::own(&admin.account));
    let secret = &rotated.secret;
    Ok(create::created(
        &dashboard,
        frame,
        &place,
        &name,
        secret,
        Some(old),
    ))
}

async fn page(
    dashboard: &Dashboard,
    admin: &Admin,
    token: TokenRecord,
    typed: FormInput,
) -> Result<Response, Failure> {
    let accounts = &dashboard.engine.accounts;
    let tokens = accounts.list_tokens(Some(admin.account.id)).await?;
    let now = dashboard.engine.now();
    let status = create::status(&typed);
    let page = RotatePage {
        frame: admin.frame(),
        expires: rotated_expiry(&token, now).map(Moment::from),
        newest: newest(&tokens),
        token: TokenRow::new(token, now),
        typed,
        graces: GRACES,
    };
    Ok(show_page(status, &page))
}
