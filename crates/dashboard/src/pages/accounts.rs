//! The accounts of somebody who belongs to several, and the way from one to another.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use domain::{AccountId, Role};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show, with_cookie};
use crate::kit::return_path::ReturnPath;
use crate::kit::session::{Posted, Visitor};

const PATH: &str = "/dashboard/accounts";

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new().route(PATH, get(list).post(switch))
}

#[derive(Template)]
#[template(path = "accounts.html")]
struct AccountsPage {
    frame: Frame,
    accounts: Vec<Row>,
}

struct Row {
    id: AccountId,
    name: String,
    role: Role,
    is_here: bool,
}

async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
) -> Result<Response, Failure> {
    page(&dashboard, &visitor, StatusCode::OK, visitor.frame()).await
}

async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    status: StatusCode,
    frame: Frame,
) -> Result<Response, Failure> {
    let here = visitor.signed_in.account();
    let accounts = match visitor.signed_in.person() {
        Some(person) => dashboard.engine.sign_in.list_accounts(person.id).await?,
        None => here
            .map(|account| (account, Role::Operator))
            .into_iter()
            .collect(),
    };
    let ids = accounts.iter().map(|(account, _)| *account).collect();
    let names = dashboard.account_names(ids).await?;
    let row = |(id, role): (AccountId, Role)| Row {
        id,
        name: names.get(&id).cloned().unwrap_or_default(),
        role,
        is_here: here == Some(id),
    };
    let accounts = accounts.into_iter().map(row).collect();
    Ok(show(status, &AccountsPage { frame, accounts }))
}

/// Goes on with another account. The session gets another secret, so that forms of pages that still show the account of
/// before do nothing.
async fn switch(
    State(dashboard): State<Arc<Dashboard>>,
    visitor: Visitor,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let account: Option<AccountId> = form.get("account").and_then(|id| id.parse().ok());
    let account = account.ok_or(Failure::Form)?;
    let sign_in = &dashboard.engine.sign_in;
    let Some(session) = sign_in.switch_account(&visitor.session, account).await? else {
        let frame = visitor.frame();
        let frame = frame.refusing("You do not belong to this account.");
        return page(&dashboard, &visitor, StatusCode::NOT_FOUND, frame).await;
    };
    let home = Redirect::to(ReturnPath::parse(None).as_str()).into_response();
    Ok(with_cookie(home, Some(dashboard.session_cookie(&session))))
}
