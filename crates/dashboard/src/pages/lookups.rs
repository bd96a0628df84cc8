//! Lookups: asking the home network of a number about it.

mod result;

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::message::MessageState;
use domain::ports::{Cursor, MessageDetail, MessageFilter, MessageSummary, Page, StoreError};
use domain::{AccountId, Channel, Country, MessageId};
use engine::sending::submit::{IdempotentRequest, LookupCost, LookupInput, SubmitError};
use http::StatusCode;
use requests::Problem;

use crate::Dashboard;
use crate::kit::browser::random_key;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::format::{Moment, money, number};
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};
use result::{Answer, answer_words};

const PAGE_SIZE: u32 = 50;
/// Most networks answer quickly, so the page waits for this pause, this many times.
const PATIENCE: (Duration, u32) = (Duration::from_millis(150), 10);

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/lookups", get(list).post(look_up))
        .route("/dashboard/lookups/{id}", get(show))
        .route("/dashboard/lookups/{id}/live", get(follow))
}

#[derive(Template)]
#[template(path = "lookups/list.html")]
struct LookupsPage {
    frame: Frame,
    typed: FormInput,
    offer: Option<Quote>,
    rows: Vec<LookupRow>,
    older: Option<String>,
    is_filtered: bool,
}

/// The price of a lookup, to be confirmed.
struct Quote {
    number: String,
    country: Option<&'static str>,
    price: String,
    /// Idempotency key, so that a double click does not look up twice.
    key: String,
}

impl Quote {
    fn new(cost: &LookupCost, currency: &str) -> Self {
        Self {
            number: cost.to.to_string(),
            country: cost.country.map(Country::short_name),
            price: money(cost.price, currency),
            key: random_key(),
        }
    }
}

struct LookupRow {
    id: u64,
    number: String,
    is_pending: bool,
    is_reached: bool,
    words: String,
    price: String,
    at: Moment,
}

impl LookupRow {
    fn new(lookup: &MessageSummary, currency: &str) -> Self {
        let outcome = match lookup.state {
            MessageState::Ended { outcome, .. } => Some(outcome),
            _ => None,
        };
        Self {
            id: lookup.id.get(),
            number: number(lookup.to),
            is_pending: outcome.is_none(),
            is_reached: outcome.is_some_and(|outcome| outcome.code() == domain::Code::FINE),
            words: outcome
                .map_or("waiting for the network", answer_words)
                .to_owned(),
            price: money(lookup.price, currency),
            at: lookup.accepted_at.into(),
        }
    }
}

/// The form or the price, above the list of past lookups.
async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let mut typed = FormInput::with_defaults(vec![("msisdn", query.text("msisdn").to_owned())]);
    let offer = match typed
        .given("msisdn")
        .map(|number| cost(&dashboard, &member, number))
    {
        None => None,
        Some(Ok(cost)) => Some(Quote::new(&cost, &dashboard.settings.currency)),
        Some(Err(error)) => {
            refuse(&mut typed, error, &dashboard)?;
            None
        }
    };
    page(&dashboard, &member, &query, typed, offer).await
}

fn cost(dashboard: &Dashboard, member: &Member, number: &str) -> Result<LookupCost, SubmitError> {
    let submit = &dashboard.engine.submit;
    submit.lookup_cost(&member.access(), order(number))
}

fn order(number: &str) -> LookupInput<'_> {
    LookupInput {
        msisdn: number.into(),
        callback_url: None,
    }
}

fn refuse(typed: &mut FormInput, error: SubmitError, dashboard: &Dashboard) -> Result<(), Failure> {
    match error {
        SubmitError::Invalid(invalid) if typed.refuse_invalid(&invalid) => {}
        SubmitError::Store(error) => return Err(Failure::from_shared(&error)),
        error => {
            let problem = Problem::from_submit(error, &dashboard.settings.currency);
            typed.refuse("msisdn", problem.into_message());
        }
    }
    Ok(())
}

async fn page(
    dashboard: &Dashboard,
    member: &Member,
    query: &Query,
    typed: FormInput,
    offer: Option<Quote>,
) -> Result<Response, Failure> {
    let before = query.get("before").and_then(|id| id.parse().ok());
    let found = find_all(dashboard, member.account.id, before).await?;
    let currency = &dashboard.settings.currency;
    let older = found.next.map(|next| next.to_string());
    let status = if typed.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = LookupsPage {
        frame: member.frame(),
        typed,
        offer,
        rows: found
            .rows
            .iter()
            .map(|lookup| LookupRow::new(lookup, currency))
            .collect(),
        older: older.map(|id| query.address_with("before", Some(&id))),
        is_filtered: before.is_some(),
    };
    Ok(show_page(status, &page))
}

async fn find_all(
    dashboard: &Dashboard,
    account: AccountId,
    before: Option<MessageId>,
) -> Result<Page<MessageSummary, MessageId>, StoreError> {
    let filter = MessageFilter {
        account: Some(account),
        channel: Some(Channel::Hlr),
        ..MessageFilter::default()
    };
    let cursor = Cursor {
        before,
        limit: PAGE_SIZE,
    };
    dashboard
        .engine
        .history
        .search_messages(&filter, cursor)
        .await
}

async fn look_up(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut typed = FormInput::from_form(&form, &["msisdn"]);
    let key = form.get("key").unwrap_or_default();
    let repeatable = IdempotentRequest::new(key.as_bytes(), typed.text("msisdn").as_bytes());
    let submit = &dashboard.engine.submit;
    let access = member.access();
    let stored = submit.look_up(&access, order(typed.text("msisdn")), repeatable, None);
    match stored.await {
        Ok(receipt) => {
            wait_for(&dashboard, member.account.id, receipt.first).await?;
            let address = format!("/dashboard/lookups/{}", receipt.first);
            Ok(Redirect::to(&address).into_response())
        }
        Err(error) => {
            refuse(&mut typed, error, &dashboard)?;
            page(&dashboard, &member, &query, typed, None).await
        }
    }
}

/// Waits briefly for the result, so that the page usually shows it at once.
async fn wait_for(
    dashboard: &Dashboard,
    account: AccountId,
    id: MessageId,
) -> Result<(), StoreError> {
    let (pause, times) = PATIENCE;
    for _ in 0..times {
        let found = dashboard.engine.messages.find_lookup(account, id).await?;
        if found.is_none_or(|lookup| lookup.report.is_some()) {
            return Ok(());
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

#[derive(Template)]
#[template(path = "lookups/lookup.html")]
struct LookupPage {
    frame: Frame,
    view: LookupView,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "lookups/detail.html")]
struct DetailPart {
    view: LookupView,
}

struct LookupView {
    lookup: LookupRow,
    answer: Option<Answer>,
    callback_url: Option<String>,
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
) -> Result<Response, Failure> {
    let (_, view) = find(&dashboard, &member, &id).await?;
    let page = LookupPage {
        frame: member.frame(),
        view,
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Live updates until the network has answered.
async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
) -> Result<Response, Failure> {
    let (id, _) = find(&dashboard, &member, &id).await?;
    let (account, own) = (member.account.id, dashboard.clone());
    Ok(live::stream(&dashboard, &member, move || {
        let dashboard = own.clone();
        async move {
            let view = lookup_view(&dashboard, account, id).await?;
            let view = view.ok_or(Failure::Form)?;
            let is_last = !view.lookup.is_pending;
            Ok(Fragment::render(&DetailPart { view }).last(is_last))
        }
    })
    .await)
}

/// A lookup of the account. Those of other accounts are not found.
async fn find(
    dashboard: &Dashboard,
    member: &Member,
    id: &str,
) -> Result<(MessageId, LookupView), Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let id = id.parse().map_err(|_| missing())?;
    let view = lookup_view(dashboard, member.account.id, id).await?;
    Ok((id, view.ok_or_else(missing)?))
}

async fn lookup_view(
    dashboard: &Dashboard,
    account: AccountId,
    id: MessageId,
) -> Result<Option<LookupView>, StoreError> {
    let history = &dashboard.engine.history;
    let detail = history.find_message_detail(Some(account), id).await?;
    let is_lookup = |detail: &MessageDetail| detail.summary.channel == Channel::Hlr;
    let reference = &dashboard.engine.catalogues.live().reference;
    let view = |detail: MessageDetail| LookupView {
        lookup: LookupRow::new(&detail.summary, &dashboard.settings.currency),
        answer: detail
            .result
            .as_deref()
            .and_then(|report| Answer::read(report, reference)),
        callback_url: detail.dlr_url,
    };
    Ok(detail.filter(is_lookup).map(view))
}
