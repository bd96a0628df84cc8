//! The accounts of a person, and switching between them.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use domain::ports::AccountRecord;
use domain::{AccountId, Role};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, show, with_cookie};
use crate::kit::return_path::ReturnPath;
use crate::kit::session::{Posted, Session};

const PATH: &str = "/dashboard/accounts";

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new().route(PATH, get(list).post(switch))
}

#[derive(Template)]
#[template(path = "accounts.html")]
struct AccountsPage {
    frame: Frame,
    accounts: Vec<AccountRow>,
    /// The account that an operator acts for without belonging to it.
    acted_for: Option<String>,
}

struct AccountRow {
    id: AccountId,
    name: String,
    role: Role,
    is_here: bool,
}

async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
) -> Result<Response, Failure> {
    page(&dashboard, &session, StatusCode::OK, session.frame()).await
}

async fn page(
    dashboard: &Dashboard,
    session: &Session,
    status: StatusCode,
    frame: Frame,
) -> Result<Response, Failure> {
    let here = session.signed_in.account();
    let accounts = match session.signed_in.person() {
        Some(person) => dashboard.engine.sign_in.list_accounts(person.id).await?,
        None => here
            .map(|account| (account, Role::Operator))
            .into_iter()
            .collect(),
    };
    let is_own = |id: &AccountId| accounts.iter().any(|(account, _)| account == id);
    let other = here.filter(|here| !is_own(here));
    let ids = accounts.iter().map(|(account, _)| *account);
    let names = dashboard.account_names(ids.chain(other).collect()).await?;
    let row = |(id, role): (AccountId, Role)| AccountRow {
        id,
        name: names.get(&id).cloned().unwrap_or_default(),
        role,
        is_here: here == Some(id),
    };
    let page = AccountsPage {
        frame,
        acted_for: other.and_then(|other| names.get(&other).cloned()),
        accounts: accounts.into_iter().map(row).collect(),
    };
    Ok(show(status, &page))
}

/// Switches to another account; without one, back to the person's own. The session gets a new secret, so that forms of
/// pages that still show the previous account have no effect.
async fn switch(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let account: Option<AccountId> = match form.get("account") {
        None | Some("") => None,
        Some(id) => Some(id.parse().map_err(|_| Failure::Form)?),
    };
    let exists = match account {
        Some(account) => {
            let found = dashboard.engine.accounts.find_by_id(account).await?;
            if let Some(account) = &found {
                ask_to_act(&dashboard, &session, account, &mut form).await?;
            }
            found.is_some()
        }
        None => true,
    };
    let sign_in = &dashboard.engine.sign_in;
    let switched = match session.signed_in.person() {
        Some(person) if exists => {
            let by = session.by();
            let switched = sign_in.switch_account(&by, person.id, &session.secret, account);
            switched.await?
        }
        _ => None,
    };
    let Some(secret) = switched else {
        let frame = session.frame();
        let frame = frame.with_problem("You do not belong to this account.");
        return page(&dashboard, &session, StatusCode::NOT_FOUND, frame).await;
    };
    let home = Redirect::to(ReturnPath::parse(None).as_str()).into_response();
    Ok(with_cookie(home, Some(dashboard.session_cookie(&secret))))
}

/// Asks for the password before an operator acts for an account that they do not belong to.
async fn ask_to_act(
    dashboard: &Dashboard,
    session: &Session,
    account: &AccountRecord,
    form: &mut Form,
) -> Result<(), Failure> {
    let person = session.signed_in.person();
    let Some(person) = person.filter(|_| session.is_operator()) else {
        return Ok(());
    };
    let own = dashboard.engine.sign_in.list_accounts(person.id).await?;
    if own.iter().any(|(known, _)| *known == account.id) {
        return Ok(());
    }
    let question = Question {
        title: &format!("Act for {}?", account.name),
        text: "You can then do everything that its admins can. Its audit log records it.",
        button: "Act for this account",
        back: &format!("/dashboard/operator/accounts/{}", account.id),
        is_dangerous: false,
    };
    session.ask_for_password(dashboard, form, &question).await
}
