//! Consent: a person decides what a client may do.
//!
//! Decisions are not remembered: each request is asked about anew.

mod target;

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use domain::person::SignedIn;
use domain::ports::AccountRecord;
use domain::{Money, Permission, Role};
use engine::Actor;
use engine::identity::grants::{Consent, Pending};
use http::StatusCode;
use http::header::{CACHE_CONTROL, REFERRER_POLICY};
use url::Url;

use crate::Dashboard;
use crate::kit::browser::{Browser, form_token};
use crate::kit::confirm::Prover;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::format::Amount;
use crate::kit::page::{Frame, notice_with, policy_with_forms_to, show_under};
use crate::kit::password_field::PasswordField;
use crate::kit::permissions::{Offer, costs};
use crate::kit::return_path::ReturnPath;
use target::Target;

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    frame: Frame,
    form_token: String,
    client: &'a str,
    described_at: Option<&'a str>,
    target: Target,
    account: &'a str,
    balance: Amount,
    ends: String,
    days: i64,
    offers: Vec<Offer>,
    scopes_named: bool,
    /// Whether it asks for something that costs money.
    asks_to_spend: bool,
    currency: &'a str,
    /// What the person entered.
    daily_cap: &'a str,
    problem: Option<&'static str>,
    /// For permissions that cost money.
    password: PasswordField,
}

/// A request of a client, with the person who may decide about it.
struct ConsentRequest<'a> {
    session: &'a str,
    signed_in: SignedIn,
    here: ReturnPath,
    account: AccountRecord,
    pending: Pending,
}

pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    browser: Browser,
) -> Result<Response, Failure> {
    let request = dashboard.consent_request(&browser, &id).await?;
    let pending = &request.pending;
    // Permission to spend is always the person's own choice.
    let is_ticked = |scope: &Permission| pending.scopes_named && !costs(*scope);
    let scopes = pending.scopes.iter().copied();
    let ticked: Vec<Permission> = scopes.filter(is_ticked).collect();
    let password = request.password(&dashboard).await?;
    Ok(request.page(&dashboard, &ticked, "", None, password))
}

/// Stores the decision and redirects the person to the client.
pub(super) async fn decide(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    browser: Browser,
    mut form: Form,
) -> Result<Response, Failure> {
    let request = dashboard.consent_request(&browser, &id).await?;
    if !browser.sent(&form, &purpose(&id), Some(request.session)) {
        return Err(Failure::NotFromHere);
    }
    let grants = &dashboard.engine.grants;
    let redirect = match form.get("decision") {
        Some("deny") => grants.deny(&id).await?,
        Some("approve") => {
            let Some(chosen) = request.chosen(&form) else {
                return Err(Failure::Form);
            };
            let entered = form.take("daily_cap");
            let entered = entered.trim();
            let again =
                |problem, password| request.page(&dashboard, &chosen, entered, problem, password);
            if chosen.is_empty() {
                let problem = "Nothing is ticked. Tick what it may do, or deny.";
                let password = request.password(&dashboard).await?;
                return Ok(again(Some(problem), password));
            }
            let Ok(daily_cap) = read_cap(entered) else {
                let problem = "The spending limit is not an amount above 0, such as 5.00. Change it, or leave it empty for no limit.";
                let password = request.password(&dashboard).await?;
                return Ok(again(Some(problem), password));
            };
            if chosen.iter().copied().any(costs) {
                let prover = request.prover();
                let password = PasswordField::check(&dashboard, prover, &mut form).await?;
                if password.problem.is_some() {
                    return Ok(again(None, password));
                }
            }
            let by = Actor::signed_in(&request.signed_in, browser.address);
            let person = request.signed_in.person();
            let consent = Consent {
                by: &by,
                account: request.account.id,
                person: person.map(|person| person.id),
                scopes: &chosen,
                daily_cap,
            };
            grants.approve(&id, consent).await?
        }
        _ => return Err(Failure::Form),
    };
    match redirect {
        Some(address) => Ok(redirect_once(&address)),
        // Decided in another window in the meantime.
        None => Err(request.over()),
    }
}

/// The address has the code in it, so it must not stay in a cache or in a `Referer`.
fn redirect_once(address: &Url) -> Response {
    let headers = [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, Redirect::to(address.as_str())).into_response()
}

/// The entered text is no amount above 0.
#[derive(Debug, PartialEq, Eq)]
struct NoAmount;

/// What the client may spend on one day. Empty means no cap.
fn read_cap(entered: &str) -> Result<Option<Money>, NoAmount> {
    if entered.is_empty() {
        return Ok(None);
    }
    let amount: Option<Money> = entered.replace(',', ".").parse().ok();
    let amount = amount.filter(|cap| *cap > Money::ZERO);
    amount.map(Some).ok_or(NoAmount)
}

/// The token of the form is valid for this request only.
fn purpose(id: &str) -> String {
    format!("consent {id}")
}

impl Dashboard {
    async fn consent_request<'a>(
        &self,
        browser: &'a Browser,
        id: &str,
    ) -> Result<ConsentRequest<'a>, Failure> {
        let here = ReturnPath::parse(Some(&format!("/oauth/consent/{id}")));
        let (session, signed_in) = self.signed_in(browser, &here).await?;
        let frame = || Frame::signed_in(session, &signed_in, &here);
        let Some(pending) = self.engine.grants.pending(id).await? else {
            return Err(over(frame()));
        };
        let account = match signed_in.account() {
            Some(account) => self.engine.accounts.find_by_id(account).await?,
            None => None,
        };
        let is_member = signed_in.role() == Role::Member;
        let refused = |title, text| {
            let page = notice_with(frame(), StatusCode::FORBIDDEN, title, text, None);
            Failure::Page(Box::new(page))
        };
        match account {
            None => Err(refused(
                "No account",
                "You do not belong to an account that a client could act for. Sign in as a person who does.",
            )),
            Some(account) if account.suspended => Err(refused(
                "This account is suspended",
                "No client can act for it now, so nothing was granted. Ask the operator of this service.",
            )),
            Some(account) if account.rules.admins_consent_only && is_member => Err(refused(
                "An admin has to connect this",
                "Only admins may let clients act for this account, so nothing was granted. Ask one of its admins to connect the client, or to change that under Settings, API.",
            )),
            Some(account) => Ok(ConsentRequest {
                session,
                signed_in,
                here,
                account,
                pending,
            }),
        }
    }
}

fn over(frame: Frame) -> Failure {
    Failure::Page(Box::new(notice_with(
        frame,
        StatusCode::NOT_FOUND,
        "This request is no longer valid",
        "It was already answered, or is older than ten minutes. To connect, start again in the program that sent you here.",
        None,
    )))
}

impl ConsentRequest<'_> {
    fn frame(&self) -> Frame {
        Frame::signed_in(self.session, &self.signed_in, &self.here)
    }

    fn prover(&self) -> Prover<'_> {
        Prover {
            secret: self.session,
            signed_in: &self.signed_in,
        }
    }

    fn asks_to_spend(&self) -> bool {
        self.pending.scopes.iter().copied().any(costs)
    }

    /// The password is asked for only if the client may spend money.
    async fn password(&self, dashboard: &Dashboard) -> Result<PasswordField, Failure> {
        if !self.asks_to_spend() {
            return Ok(PasswordField::default());
        }
        PasswordField::new(dashboard, self.prover()).await
    }

    fn over(&self) -> Failure {
        over(self.frame())
    }

    /// The ticked scopes; `None` if one of them was not offered.
    fn chosen(&self, form: &Form) -> Option<Vec<Permission>> {
        let offered = |name: &str| {
            let scopes = self.pending.scopes.iter();
            scopes.copied().find(|scope| scope.name() == name)
        };
        form.all("scope").map(offered).collect()
    }

    fn page(
        &self,
        dashboard: &Dashboard,
        ticked: &[Permission],
        daily_cap: &str,
        problem: Option<&'static str>,
        password: PasswordField,
    ) -> Response {
        let pending = &self.pending;
        let offers = pending.scopes.iter();
        let is_document = pending.client_id.starts_with("https://");
        let page = ConsentPage {
            frame: self.frame(),
            form_token: form_token(self.session, &purpose(&pending.id)),
            client: &pending.client_name,
            described_at: is_document.then_some(pending.client_id.as_str()),
            target: Target::new(&pending.redirect_uri, pending.is_loopback),
            account: &self.account.name,
            balance: Amount::new(self.account.balance, &dashboard.settings.currency),
            ends: pending.expires_at.strftime("%H:%M UTC").to_string(),
            days: dashboard.engine.grants.settings().grant_lifetime.as_hours() / 24,
            offers: offers
                .map(|scope| Offer::new(*scope, ticked.contains(scope)))
                .collect(),
            scopes_named: pending.scopes_named,
            asks_to_spend: self.asks_to_spend(),
            currency: &dashboard.settings.currency,
            daily_cap,
            problem,
            password,
        };
        let status = if problem.is_some() || page.password.problem.is_some() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        show_under(&policy(&pending.redirect_uri), status, &page)
    }
}

/// Browsers apply `form-action` to every redirect that follows a form, so this page must allow the address of the
/// client and any HTTPS address that it redirects to.
fn policy(redirect_uri: &str) -> String {
    let url = Url::parse(redirect_uri).ok();
    let scheme = url.as_ref().map(Url::scheme);
    let own = scheme.filter(|scheme| *scheme != "https");
    policy_with_forms_to(["https"].into_iter().chain(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_an_amount_above_zero() {
        let amount = |text: &str| Ok(Some(text.parse().expect(text)));
        for (entered, expected) in [
            ("", Ok(None)),
            ("5", amount("5")),
            ("5.00", amount("5")),
            ("0,5", amount("0.5")),
            ("0.000001", amount("0.000001")),
            ("0", Err(NoAmount)),
            ("-5", Err(NoAmount)),
            ("5 EUR", Err(NoAmount)),
            ("five", Err(NoAmount)),
            ("1.000,00", Err(NoAmount)),
            ("99999999999999999999", Err(NoAmount)),
        ] {
            assert_eq!(read_cap(entered), expected, "{entered:?}");
        }
    }
}
