//! Traffic by day of all accounts, or of one.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use engine::identity::accounts::AccountError;
use engine::reading::traffic::DAYS;
use http::StatusCode;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Operator;
use crate::pages::overview::status::{PeriodForm, Scope, Status};

#[derive(Template)]
#[template(path = "operator/traffic.html")]
struct TrafficPage {
    frame: Frame,
    account: String,
    account_problem: Option<&'static str>,
    period: PeriodForm,
    status: Option<Status>,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let mut period = PeriodForm::read(&query);
    if period.days.is_none() && period.problem.is_none() {
        period = last_days(dashboard.engine.now());
    }
    let (account, account_problem) = match query.get("account") {
        None => (None, None),
        Some(name) => match dashboard.engine.accounts.get(name).await {
            Ok(account) => (Some(account), None),
            Err(AccountError::Store(error)) => return Err(error.into()),
            Err(_) => (None, Some("There is no account with this name.")),
        },
    };
    let status = match period.days {
        Some((first, last)) if account_problem.is_none() => {
            let scope = Scope::Operator(account.as_ref());
            Some(dashboard.period_status(scope, first, last).await?)
        }
        _ => None,
    };
    let code = match status {
        Some(_) => StatusCode::OK,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let page = TrafficPage {
        frame: operator.frame(),
        account: query.text("account").to_owned(),
        account_problem,
        period,
        status,
    };
    Ok(show_page(code, &page))
}

/// As many days as the overview of an account shows.
fn last_days(now: Timestamp) -> PeriodForm {
    let last = now.to_zoned(TimeZone::UTC).date();
    let before = i32::try_from(DAYS).map_or(0, |days| days - 1);
    let first: Date = last.saturating_sub(Span::new().days(before));
    PeriodForm {
        from: first.to_string(),
        to: last.to_string(),
        problem: None,
        days: Some((first, last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_days_end_today() {
        let now = "2026-03-01T23:59:59Z".parse().expect("a time");
        let period = last_days(now);
        assert_eq!((&*period.from, &*period.to), ("2026-01-31", "2026-03-01"));
    }
}
