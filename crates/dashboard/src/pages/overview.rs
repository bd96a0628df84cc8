//! The overview of an account: balance, counts and charts.

pub(super) mod status;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::Money;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;

use status::{PeriodForm, Scope, Status};

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    /// Why nothing can be sent, and what to do.
    obstacle: Option<(&'static str, &'static str)>,
    offers_first_steps: bool,
    is_simulated: bool,
    offers_password: bool,
    /// Without days, the page shows the last ones and updates itself.
    period: PeriodForm,
    status: Status,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "overview_status.html")]
struct StatusPart {
    status: Status,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard", get(show))
        .route("/dashboard/live", get(follow))
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let period = PeriodForm::read(&query);
    let account = &member.account;
    let status = match period.days {
        None => dashboard.status(account).await?,
        Some((first, last)) => {
            let scope = Scope::Member(account);
            dashboard.period_status(scope, first, last).await?
        }
    };
    let code = match period.problem {
        None => StatusCode::OK,
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let frame = match (member.said(&query), member.signed_in.person()) {
        (Some("password"), Some(person)) => member.frame().with_success(format!(
            "Your password was saved. From now on, sign in as {}.",
            person.email
        )),
        _ => member.frame(),
    };
    let available = account.balance.plus(account.rules.credit_limit);
    let page = OverviewPage {
        frame,
        obstacle: obstacle(account.suspended, available),
        offers_first_steps: !account.suspended
            && available >= Money::ZERO
            && period.days.is_none()
            && !status.has_traffic(),
        is_simulated: dashboard.engine.is_simulated(),
        offers_password: member.signed_in.person().is_none(),
        period,
        status,
    };
    Ok(show_page(code, &page))
}

fn obstacle(is_suspended: bool, available: Money) -> Option<(&'static str, &'static str)> {
    if is_suspended {
        return Some((
            "This account is suspended.",
            "Nothing can be sent. Ask the operator of this service.",
        ));
    }
    (available <= Money::ZERO).then_some((
        "Not enough balance.",
        "Messages that cost money are refused until the account is topped up. Ask the operator of this service.",
    ))
}

async fn follow(State(dashboard): State<Arc<Dashboard>>, member: Member) -> Response {
    let account = member.account.id;
    let own = dashboard.clone();
    live::stream(&dashboard, &member, move || {
        let dashboard = own.clone();
        async move {
            let found = dashboard.engine.accounts.find_by_id(account).await?;
            // Accounts are never deleted.
            let account = found.ok_or(Failure::Form)?;
            let status = dashboard.status(&account).await?;
            Ok(Fragment::render(&StatusPart { status }))
        }
    })
    .await
}
