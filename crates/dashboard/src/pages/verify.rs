//! One-time codes: how many are entered, the latest ones, and a form to try one.

pub(super) mod conversion;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::verify::{Verification, VerificationState};
use domain::{Money, VerificationId};
use engine::sending::submit::{IdempotentRequest, SubmitError};
use engine::verify::{CheckError, StartError, VerifyInput};
use http::StatusCode;
use requests::Problem;

use crate::Dashboard;
use crate::kit::browser::random_key;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::format::{Moment, money};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};
use conversion::Conversions;

const HERE: &str = "/dashboard/verify";
const PAGE_SIZE: u32 = 50;
/// How many prefixes and networks are shown.
const MOST_ROWS: u32 = 50;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(list).post(start))
        .route("/dashboard/verify/{id}", get(show).post(check))
}

#[derive(Template)]
#[template(path = "verify/list.html")]
struct VerifyPage {
    frame: Frame,
    typed: FormInput,
    /// Idempotency key, so that a double click does not send twice.
    key: String,
    /// What an approved verification costs; `None` if nothing.
    price: Option<String>,
    conversions: Conversions,
    rows: Vec<VerificationRow>,
    older: Option<String>,
    is_filtered: bool,
}

struct VerificationRow {
    id: u64,
    to: String,
    state: &'static str,
    is_pending: bool,
    tries: u32,
    at: Moment,
    expires: Moment,
    price: String,
}

impl VerificationRow {
    fn new(verification: &Verification, currency: &str) -> Self {
        Self {
            id: verification.id.get(),
            to: verification.to.to_string(),
            state: verification.state.name(),
            is_pending: verification.state == VerificationState::Pending,
            tries: verification.tries,
            at: verification.created_at.into(),
            expires: verification.expires_at.into(),
            price: match verification.charged() {
                Money::ZERO => "–".to_owned(),
                charged => money(charged, currency),
            },
        }
    }
}

async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    page(&dashboard, &member, &query, FormInput::default()).await
}

async fn page(
    dashboard: &Dashboard,
    member: &Member,
    query: &Query,
    typed: FormInput,
) -> Result<Response, Failure> {
    let before: Option<VerificationId> = query.get("before").and_then(|id| id.parse().ok());
    let (account, verify) = (member.account.id, &dashboard.engine.verify);
    let found = verify.list(account, before, PAGE_SIZE).await?;
    let older = found.last().filter(|_| found.len() == PAGE_SIZE as usize);
    let older = older.map(|last| query.address_with("before", Some(&last.id.to_string())));
    let currency = &dashboard.settings.currency;
    let price = member.account.rules.verify_price;
    let status = if typed.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let rows = found.iter();
    let page = VerifyPage {
        frame: member.frame(),
        typed,
        key: random_key(),
        price: (price != Money::ZERO).then(|| money(price, currency)),
        conversions: dashboard.conversions(Some(account), MOST_ROWS).await?,
        rows: rows
            .map(|one| VerificationRow::new(one, currency))
            .collect(),
        older,
        is_filtered: before.is_some(),
    };
    Ok(show_page(status, &page))
}

async fn start(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut typed = FormInput::from_form(&form, &["to", "from"]);
    let key = form.get("key").unwrap_or_default();
    let body = format!("{}\n{}", typed.text("to"), typed.text("from"));
    let repeatable = IdempotentRequest::new(key.as_bytes(), body.as_bytes());
    let input = VerifyInput {
        to: typed.text("to").into(),
        from: typed.given("from").map(Into::into),
        length: None,
        expire_in: None,
        message: None,
        correct_by: None,
    };
    let verify = &dashboard.engine.verify;
    match verify.start(&member.access(), input, repeatable).await {
        Ok(sent) => Ok(Redirect::to(&format!("{HERE}/{}", sent.id)).into_response()),
        Err(StartError::Store(error)) => Err(error.into()),
        Err(StartError::Send(SubmitError::Store(error))) => Err(Failure::from_shared(&error)),
        Err(StartError::Invalid(invalid)) if typed.refuse_invalid(&invalid) => {
            page(&dashboard, &member, &query, typed).await
        }
        Err(error) => {
            let problem = Problem::from_verification(error, &dashboard.settings.currency);
            typed.refuse("to", problem.into_message());
            page(&dashboard, &member, &query, typed).await
        }
    }
}

#[derive(Template)]
#[template(path = "verify/verification.html")]
struct VerificationPage {
    frame: Frame,
    row: VerificationRow,
    /// Never contains a code.
    typed: FormInput,
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let found = find(&dashboard, &member, &id).await?;
    let mut frame = member.frame();
    if member.said(&query) == Some("approved") {
        frame = frame.with_success("The code is right.");
    }
    Ok(show_one(&dashboard, frame, &found, FormInput::default()))
}

async fn find(dashboard: &Dashboard, member: &Member, id: &str) -> Result<Verification, Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let id = id.parse().map_err(|_| missing())?;
    let found = dashboard.engine.verify.find(member.account.id, id).await?;
    found.ok_or_else(missing)
}

fn show_one(
    dashboard: &Dashboard,
    frame: Frame,
    found: &Verification,
    typed: FormInput,
) -> Response {
    let status = if typed.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = VerificationPage {
        frame,
        row: VerificationRow::new(found, &dashboard.settings.currency),
        typed,
    };
    show_page(status, &page)
}

async fn check(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let verification: VerificationId = id.parse().map_err(|_| missing())?;
    let (account, verify) = (member.account.id, &dashboard.engine.verify);
    let code = form.get("code").unwrap_or_default().trim();
    let problem = match verify.check(account, verification, code).await {
        Ok(()) => {
            let address = format!("{HERE}/{verification}");
            return Ok(member.redirect_saying(&address, "approved"));
        }
        Err(CheckError::Unknown) => return Err(missing()),
        Err(CheckError::Store(error)) => return Err(error.into()),
        Err(CheckError::Invalid(invalid)) => invalid.reason,
        Err(CheckError::Wrong { tries_left }) => {
            format!("The code is wrong. Tries left: {tries_left}.")
        }
        Err(CheckError::Over(state)) => {
            let state = state.name();
            format!("This verification is {state}, so no code is checked.")
        }
    };
    let mut typed = FormInput::default();
    typed.refuse("code", problem);
    let found = find(&dashboard, &member, &id).await?;
    Ok(show_one(&dashboard, member.frame(), &found, typed))
}
