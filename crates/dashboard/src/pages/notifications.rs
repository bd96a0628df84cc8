//! Where an account is notified about its balance and its callback hosts.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::CallbackUrl;
use domain::billing::RuleChange;
use domain::person::Email;
use domain::ports::NotifySetting;
use engine::alerts::SettingError;
use engine::identity::accounts::AccountError;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Admin, Posted};

const HERE: &str = "/dashboard/settings/notifications";
const URL: &str = "url";
const EMAIL: &str = "email";
const LOW_BALANCE: &str = "low_balance";

#[derive(Template)]
#[template(path = "notifications.html")]
struct NotificationsPage {
    frame: Frame,
    input: FormInput,
    currency: String,
    /// Whether this service can send e-mail.
    has_mail: bool,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new().route(HERE, get(show).post(change))
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    query: Query,
) -> Result<Response, Failure> {
    let setting = dashboard
        .engine
        .alerts
        .find_setting(admin.account.id)
        .await?;
    let low_balance = admin.account.rules.low_balance;
    let input = FormInput::with_defaults(vec![
        (
            URL,
            setting
                .url
                .map(|url| url.as_str().to_owned())
                .unwrap_or_default(),
        ),
        (
            EMAIL,
            setting
                .email
                .map(|email| email.to_string())
                .unwrap_or_default(),
        ),
        (
            LOW_BALANCE,
            low_balance.map(|low| low.to_string()).unwrap_or_default(),
        ),
    ]);
    let mut frame = admin.frame();
    if admin.said(&query) == Some("saved") {
        frame = frame.with_success("The notifications were changed.");
    }
    Ok(page(&dashboard, frame, input))
}

fn page(dashboard: &Dashboard, frame: Frame, input: FormInput) -> Response {
    let status = if input.is_refused() {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    };
    let page = NotificationsPage {
        frame,
        input,
        currency: dashboard.settings.currency.clone(),
        has_mail: dashboard.engine.mailer.is_some(),
    };
    show_page(status, &page)
}

async fn change(
    State(dashboard): State<Arc<Dashboard>>,
    admin: Admin,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut input = FormInput::from_form(&form, &[URL, EMAIL, LOW_BALANCE]);
    let (setting, rule) = read(&mut input);
    let Some(rule) = rule.filter(|_| !input.is_refused()) else {
        return Ok(page(&dashboard, admin.frame(), input));
    };
    let (by, account) = (admin.by(), &admin.account);
    let alerts = &dashboard.engine.alerts;
    match alerts.set_setting(&by, account.id, &setting).await {
        Ok(()) => {}
        Err(SettingError::Url(forbidden)) => {
            input.refuse(URL, forbidden);
            return Ok(page(&dashboard, admin.frame(), input));
        }
        Err(SettingError::Store(error)) => return Err(error.into()),
    }
    let accounts = &dashboard.engine.accounts;
    let set = accounts
        .set_rules(&by, &account.name, |rules| rule.clone().apply(rules))
        .await;
    match set {
        Ok(_) => {}
        Err(AccountError::Store(error)) => return Err(error.into()),
        Err(_) => return Err(Failure::NotFound(Box::new(admin.frame()))),
    }
    Ok(admin.redirect_saying(HERE, "saved"))
}

/// Reads the fields. Invalid ones get a problem.
fn read(input: &mut FormInput) -> (NotifySetting, Option<RuleChange>) {
    let mut setting = NotifySetting::default();
    if let Some(url) = input.given(URL).map(str::to_owned) {
        match CallbackUrl::parse(&url) {
            Ok(url) => setting.url = Some(url),
            Err(error) => input.refuse(URL, error),
        }
    }
    if let Some(email) = input.given(EMAIL).map(str::to_owned) {
        match email.parse::<Email>() {
            Ok(email) => setting.email = Some(email),
            Err(_) => input.refuse(EMAIL, "write it like ann@example.com"),
        }
    }
    let low = input.given(LOW_BALANCE).unwrap_or("off");
    let rule = match format!("low_balance={low}").parse() {
        Ok(rule) => Some(rule),
        Err(problem) => {
            input.refuse(LOW_BALANCE, problem);
            None
        }
    };
    (setting, rule)
}
