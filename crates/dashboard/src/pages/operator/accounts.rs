//! All accounts, and creating one.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::{AccountRecord, Cursor};
use domain::{AccountId, AccountName, Money};
use engine::identity::accounts::AccountError;
use http::StatusCode;

use super::{Field, PAGE_SIZE};
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Amount, Moment};
use crate::kit::page::{Frame, show};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

#[derive(Template)]
#[template(path = "operator/accounts.html")]
struct AccountsPage {
    frame: Frame,
    search: String,
    rows: Vec<AccountRow>,
    older: Option<String>,
    is_later: bool,
    new: NewAccountForm,
    currency: String,
}

struct AccountRow {
    id: u64,
    name: String,
    balance: Amount,
    is_suspended: bool,
    created: Moment,
}

#[derive(Default)]
struct NewAccountForm {
    name: Field,
    balance: Field,
    /// Whether the form is unfolded, because it was sent with a problem.
    is_open: bool,
}

pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    page(
        &dashboard,
        &operator,
        &query,
        NewAccountForm::default(),
        StatusCode::OK,
    )
    .await
}

pub(super) async fn create(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut new = NewAccountForm {
        name: Field::typed(&form, "name"),
        balance: Field::typed(&form, "balance"),
        is_open: true,
    };
    let balance = match new.balance.text.as_str() {
        "" => Ok(Money::ZERO),
        text => text.parse::<Money>(),
    };
    match balance {
        Err(problem) => {
            new.balance = new.balance.refused(&problem);
            if let Err(problem) = new.name.text.parse::<AccountName>() {
                new.name = new.name.refused(&problem);
            }
        }
        Ok(balance) => {
            let accounts = &dashboard.engine.accounts;
            let by = operator.by();
            match accounts.create(&by, &new.name.text, balance).await {
                Ok((account, _)) => {
                    let address = super::account::address(account.id);
                    return Ok(operator.redirect_saying(&address, "created"));
                }
                Err(AccountError::Store(error)) => return Err(error.into()),
                Err(problem @ AccountError::Amount(_)) => {
                    new.balance = new.balance.refused(&problem);
                }
                Err(problem) => new.name = new.name.refused(&problem),
            }
        }
    }
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    page(&dashboard, &operator, &Query::default(), new, status).await
}

async fn page(
    dashboard: &Dashboard,
    operator: &Operator,
    query: &Query,
    new: NewAccountForm,
    status: StatusCode,
) -> Result<Response, Failure> {
    let before = query.get("before").and_then(|id| id.parse().ok());
    let cursor = Cursor {
        before: before.and_then(AccountId::new),
        limit: PAGE_SIZE,
    };
    let found = dashboard
        .engine
        .accounts
        .search(query.get("name"), cursor)
        .await?;
    let next = found.next.map(|id| id.get().to_string());
    let currency = &dashboard.settings.currency;
    let page = AccountsPage {
        frame: operator.frame(),
        search: query.text("name").to_owned(),
        rows: found
            .rows
            .iter()
            .map(|row| AccountRow::new(row, currency))
            .collect(),
        older: next.map(|next| query.address_with("before", Some(&next))),
        is_later: cursor.before.is_some(),
        new,
        currency: currency.clone(),
    };
    Ok(show(status, &page))
}

impl AccountRow {
    fn new(account: &AccountRecord, currency: &str) -> Self {
        Self {
            id: account.id.get(),
            name: account.name.clone(),
            balance: Amount::new(account.balance, currency),
            is_suspended: account.suspended,
            created: account.created_at.into(),
        }
    }
}
