//! The messages of all accounts, for operators.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use domain::AccountId;
use engine::identity::accounts::AccountError;

use super::filter::Filters;
use super::list::Reader;
use super::{MessagesPage, respond};
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::query::Query;
use crate::kit::session::Operator;

pub(super) const HERE: &str = "/dashboard/operator/messages";

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let (mut filters, account) = dashboard.read_filters(&query).await?;
    if let Some(id) = filters.id {
        let history = &dashboard.engine.history;
        if history.find_message_detail(account, id).await?.is_some() {
            return Ok(Redirect::to(&format!("{HERE}/{id}")).into_response());
        }
        filters.refuse("id", format!("There is no message {id}."));
    }
    let page = MessagesPage {
        frame: operator.frame(),
        live: None,
        list: dashboard
            .list(Reader::Operator(account), &filters, &query)
            .await?,
        totals: dashboard
            .found_totals(Reader::Operator(account), &filters, &query)
            .await?,
        download: None,
        query,
        filters,
    };
    Ok(respond(&page))
}

impl Dashboard {
    pub(super) fn filters(&self, query: &Query) -> Filters {
        Filters::read(query, &self.engine.catalogues.live().reference)
    }

    /// The filters of a search, and the account that it is limited to.
    pub(super) async fn read_filters(
        &self,
        query: &Query,
    ) -> Result<(Filters, Option<AccountId>), Failure> {
        let mut filters = self.filters(query);
        let Some(name) = query.get("account") else {
            return Ok((filters, None));
        };
        match self.engine.accounts.get(name).await {
            Ok(account) => Ok((filters, Some(account.id))),
            Err(AccountError::Store(error)) => Err(error.into()),
            Err(_) => {
                filters.refuse("account", "There is no account with this name.".to_owned());
                Ok((filters, None))
            }
        }
    }
}
