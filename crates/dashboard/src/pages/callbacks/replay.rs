//! Replaying callbacks: one, or all that match a filter.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use domain::AccountId;
use domain::ports::{CallbackFilter, ListRange, StoreError};
use http::StatusCode;

use super::filter::Filters;
use super::find;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::count;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};

const MOST_COUNTED: u32 = 1000;

#[derive(Template)]
#[template(path = "callbacks/replay.html")]
struct ReplayPage {
    frame: Frame,
    filters: Filters,
    most: String,
    is_none: bool,
    /// The result, after the replay.
    done: Option<String>,
}

/// Asks for confirmation, with the number of callbacks.
pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let filters = Filters::read(&query);
    if filters.replay_address().is_none() {
        return Ok(Redirect::to("/dashboard/callbacks").into_response());
    }
    let (most, is_none) = most(&dashboard, member.account.id, &filters).await?;
    let page = ReplayPage {
        frame: member.frame(),
        filters,
        most,
        is_none,
        done: None,
    };
    Ok(show_page(StatusCode::OK, &page))
}

async fn most(
    dashboard: &Dashboard,
    account: AccountId,
    filters: &Filters,
) -> Result<(String, bool), StoreError> {
    let page = ListRange {
        limit: MOST_COUNTED + 1,
        offset: 0,
    };
    let reports = &dashboard.engine.reports;
    let found = reports
        .list(&filters.for_account(account), page)
        .await?
        .len();
    let words = match found {
        found if found > MOST_COUNTED as usize => {
            format!("More than {} callbacks", count(MOST_COUNTED.into()))
        }
        1 => "At most 1 callback".to_owned(),
        found => format!("At most {} callbacks", count(found as u64)),
    };
    Ok((words, found == 0))
}

pub(super) async fn replay(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let get = |name: &str| {
        form.get(name)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let filters = Filters::from_fields(get);
    if filters.replay_address().is_none() {
        return Err(Failure::Form);
    }
    let reports = &dashboard.engine.reports;
    let filter = filters.for_account(member.account.id);
    let replayed = reports.replay(&member.by(), &filter).await?;
    let done = match replayed {
        0 => "None was sent again: matching callbacks are being sent right now, or were deleted."
            .to_owned(),
        1 => "1 callback is being sent again.".to_owned(),
        many => format!("{} callbacks are being sent again.", count(many)),
    };
    let page = ReplayPage {
        frame: member.frame().with_success(done.clone()),
        filters,
        most: String::new(),
        is_none: false,
        done: Some(done),
    };
    Ok(show_page(StatusCode::OK, &page))
}

pub(super) async fn replay_one(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    _form: Posted,
) -> Result<Response, Failure> {
    let (callback, _) = find(&dashboard, &member, &id).await?;
    let filter = CallbackFilter {
        account: Some(member.account.id),
        id: Some(callback.id),
        with_done: true,
        ..CallbackFilter::default()
    };
    let reports = &dashboard.engine.reports;
    let said = match reports.replay(&member.by(), &filter).await? {
        0 => "busy",
        _ => "replayed",
    };
    let address = format!("/dashboard/callbacks/{}", callback.id);
    Ok(member.redirect_saying(&address, said))
}
