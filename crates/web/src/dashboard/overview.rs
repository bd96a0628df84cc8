//! The overview of an account: what it has, and how its messages fared.

mod traffic;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::ports::AccountRecord;
use http::StatusCode;

use super::Dashboard;
use super::chart::{Chart, Tally};
use super::live::{self, Fragment};
use super::page::{Failure, Frame, show as show_page};
use super::shown::{count, money};
use super::visitor::Member;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    is_suspended: bool,
    is_simulated: bool,
    offers_password: bool,
    has_traffic: bool,
    now: Now,
    charts: Vec<Chart>,
}

/// The part that renews itself.
#[derive(Template)]
#[template(path = "overview_now.html")]
struct NowPart {
    now: Now,
}

/// How the account stands at this moment.
struct Now {
    account: String,
    balance: String,
    currency: String,
    today: Figures,
    week: Figures,
    hours: Chart,
}

/// What came of the messages of a time.
struct Figures {
    ended: String,
    delivered: String,
    failed: String,
    cost: String,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard", get(show))
        .route("/dashboard/live", get(follow))
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
) -> Result<Response, Failure> {
    let now = dashboard.now(&member.account).await?;
    let charts = dashboard.charts(member.account.id).await?;
    let page = Overview {
        frame: member.frame(),
        is_suspended: member.account.suspended,
        is_simulated: dashboard.engine.is_simulated(),
        offers_password: member.signed_in.person().is_none(),
        has_traffic: charts.iter().any(|chart| !chart.is_blank()),
        now,
        charts,
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// The counters, again and again.
async fn follow(State(dashboard): State<Arc<Dashboard>>, member: Member) -> Response {
    let account = member.account.id;
    let own = dashboard.clone();
    live::stream(&dashboard, &member, move || {
        let dashboard = own.clone();
        async move {
            let found = dashboard.engine.accounts.find_by_id(account).await?;
            // It cannot be gone: accounts are never deleted. If it were, so would be the session.
            let account = found.ok_or(Failure::Form)?;
            let now = dashboard.now(&account).await?;
            Ok(Fragment::of(&NowPart { now }))
        }
    })
}

impl Dashboard {
    async fn now(&self, account: &AccountRecord) -> Result<Now, Failure> {
        let recent = self.recent(account.id).await?;
        let figures = |tally: Tally| Figures {
            ended: count(tally.all()),
            delivered: tally.share(),
            failed: count(tally.failed + tally.expired),
            cost: money(tally.cost, &self.settings.currency),
        };
        Ok(Now {
            account: account.name.clone(),
            balance: money(account.balance, &self.settings.currency),
            currency: self.settings.currency.clone(),
            today: figures(recent.today),
            week: figures(recent.week),
            hours: recent.hours,
        })
    }
}
