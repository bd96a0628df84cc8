//! One account: its money, its limits, whether it may send.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use domain::billing::{LedgerEntry, RuleChange, SpendingRules};
use domain::note::Note;
use domain::ports::{AccountRecord, Look};
use domain::{AccountId, Money};
use engine::accounts::AccountError;
use engine::traffic::Totals;
use http::StatusCode;

use super::{Field, PAGE};
use crate::dashboard::Dashboard;
use crate::dashboard::form::Form;
use crate::dashboard::page::{Failure, Frame, show as show_page};
use crate::dashboard::query::Query;
use crate::dashboard::shown::{Moment, count, money};
use crate::dashboard::visitor::{Operator, Posted};

#[derive(Template)]
#[template(path = "operator/account.html")]
struct Page {
    frame: Frame,
    id: u64,
    name: String,
    name_in_address: String,
    is_suspended: bool,
    created: Moment,
    balance: String,
    available: String,
    tokens: String,
    traffic: Vec<Traffic>,
    currency: String,
    credit: Credit,
    limits: Limits,
    ledger: Vec<Entry>,
    older: Option<String>,
    is_later_page: bool,
}

/// What ended within a time.
struct Traffic {
    when: &'static str,
    sent: String,
    delivered: String,
    failed: String,
    expired: String,
    cost: String,
}

/// The form that changes the balance.
#[derive(Default)]
struct Credit {
    amount: Field,
    note: Field,
}

/// The form of the limits, with the values that it was shown with.
struct Limits {
    before: Values,
    credit_limit: Field,
    daily_cap: Field,
    per_recipient_hour: Field,
    countries: Field,
    approved_senders_only: bool,
}

/// Limits as they are typed; an empty text means that there is none.
struct Values {
    credit_limit: String,
    daily_cap: String,
    per_recipient_hour: String,
    countries: String,
    approved_senders_only: bool,
}

struct Entry {
    at: Moment,
    kind: &'static str,
    amount: String,
    balance: String,
    messages: String,
    note: String,
}

/// The address of an account's page, with the word for what was just done.
pub(super) fn address(id: AccountId, done: Option<&str>) -> String {
    let done = done.map_or_else(String::new, |done| format!("?done={done}"));
    format!("/dashboard/operator/accounts/{id}{done}")
}

/// What the page says of what was just done.
fn in_words(done: &str) -> Option<&'static str> {
    match done {
        "created" => {
            Some("The account was created. Invite its people, or make a token for its programs.")
        }
        "credited" => Some("The balance was changed."),
        "limited" => Some("The limits are in force."),
        "suspended" => {
            Some("The account is suspended. Every node refuses its tokens within a second.")
        }
        "resumed" => Some("The account goes on."),
        _ => None,
    }
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response, Failure> {
    let account = find(&dashboard, &operator, &id).await?;
    let limits = Limits::of(&account.rules);
    let mut frame = operator.frame();
    if let Some(words) = query.get("done").and_then(in_words) {
        frame = frame.saying(words);
    }
    let built = build(
        &dashboard,
        frame,
        &account,
        &query,
        Credit::default(),
        limits,
    );
    Ok(show_page(StatusCode::OK, &built.await?))
}

/// Adds money, or takes some off.
pub(super) async fn credit(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let account = find(&dashboard, &operator, &id).await?;
    let mut credit = Credit {
        amount: Field::typed(&form, "amount"),
        note: Field::typed(&form, "note"),
    };
    if let Err(problem) = credit.note.text.parse::<Note>() {
        credit.note = credit.note.refused(problem);
        let limits = Limits::of(&account.rules);
        return refuse(&dashboard, &operator, &account, credit, limits).await;
    }
    let typed = &credit.amount.text;
    let amount = typed.strip_prefix('+').unwrap_or(typed).parse::<Money>();
    let problem = match amount {
        Err(problem) => problem.to_string(),
        Ok(Money::ZERO) => {
            "That changes nothing; give an amount above zero, or one below to take money off."
                .to_owned()
        }
        Ok(amount) => {
            let note = Some(credit.note.text.as_str()).filter(|note| !note.is_empty());
            let accounts = &dashboard.engine.accounts;
            match accounts
                .credit(&operator.by(), &account.name, amount, note)
                .await
            {
                Ok(_) => {
                    let address = address(account.id, Some("credited"));
                    return Ok(Redirect::to(&address).into_response());
                }
                Err(AccountError::Store(error)) => return Err(error.into()),
                Err(problem) => problem.to_string(),
            }
        }
    };
    credit.amount = credit.amount.refused(problem);
    let limits = Limits::of(&account.rules);
    refuse(&dashboard, &operator, &account, credit, limits).await
}

/// Changes the limits whose fields were changed, and no other: somebody else may have changed those.
pub(super) async fn set_limits(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let account = find(&dashboard, &operator, &id).await?;
    let mut limits = Limits::typed(&form);
    let changes = limits.changes();
    if limits.has_problem() {
        return refuse(&dashboard, &operator, &account, Credit::default(), limits).await;
    }
    if !changes.is_empty() {
        let apply = |rules: &mut SpendingRules| {
            for change in &changes {
                change.clone().apply(rules);
            }
        };
        let accounts = &dashboard.engine.accounts;
        let changed = accounts
            .set_rules(&operator.by(), &account.name, apply)
            .await;
        changed.map_err(|error| gone(&operator, error))?;
    }
    Ok(Redirect::to(&address(account.id, Some("limited"))).into_response())
}

/// Suspends the account, or lets it go on.
pub(super) async fn set_state(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let account = find(&dashboard, &operator, &id).await?;
    let (suspended, done) = match form.get("state") {
        Some("suspended") => (true, "suspended"),
        Some("active") => (false, "resumed"),
        _ => return Err(Failure::Form),
    };
    let accounts = &dashboard.engine.accounts;
    let changed = accounts
        .set_suspended(&operator.by(), &account.name, suspended)
        .await;
    changed.map_err(|error| gone(&operator, error))?;
    Ok(Redirect::to(&address(account.id, Some(done))).into_response())
}

/// The account that an address names.
async fn find(
    dashboard: &Dashboard,
    operator: &Operator,
    id: &str,
) -> Result<AccountRecord, Failure> {
    let id = id.parse().ok().and_then(AccountId::new);
    let found = match id {
        Some(id) => dashboard.engine.accounts.find_by_id(id).await?,
        None => None,
    };
    found.ok_or_else(|| Failure::NotFound(Box::new(operator.frame())))
}

/// The account was there a moment ago, so whatever else went wrong lies with the store.
fn gone(operator: &Operator, error: AccountError) -> Failure {
    match error {
        AccountError::Store(error) => error.into(),
        _ => Failure::NotFound(Box::new(operator.frame())),
    }
}

async fn refuse(
    dashboard: &Dashboard,
    operator: &Operator,
    account: &AccountRecord,
    credit: Credit,
    limits: Limits,
) -> Result<Response, Failure> {
    let frame = operator.frame().refusing("Nothing was changed.");
    let query = Query::default();
    let page = build(dashboard, frame, account, &query, credit, limits).await?;
    Ok(show_page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn build(
    dashboard: &Dashboard,
    frame: Frame,
    account: &AccountRecord,
    query: &Query,
    credit: Credit,
    limits: Limits,
) -> Result<Page, Failure> {
    let accounts = &dashboard.engine.accounts;
    let look = Look {
        before: query.get("before").and_then(|id| id.parse().ok()),
        limit: PAGE,
    };
    let entries = accounts.ledger_page(account.id, look).await?;
    let tokens = accounts.list_tokens(Some(account.id)).await?.len();
    let now = dashboard.engine.now();
    let traffic = dashboard
        .engine
        .traffic
        .overview(Some(account.id), now)
        .await?;
    let is_full = entries.len() >= PAGE as usize;
    let last = entries
        .last()
        .filter(|_| is_full)
        .map(|entry| entry.id.to_string());
    let currency = &dashboard.settings.currency;
    let available = account.balance.plus(account.rules.credit_limit);
    Ok(Page {
        frame,
        id: account.id.get(),
        name: account.name.clone(),
        name_in_address: super::in_address(&account.name),
        is_suspended: account.suspended,
        created: account.created_at.into(),
        balance: money(account.balance, currency),
        available: money(available.max(Money::ZERO), currency),
        tokens: count(tokens as u64),
        traffic: vec![
            Traffic::of("Today, UTC", &traffic.today, currency),
            Traffic::of("Last 7 days", &traffic.last_7_days, currency),
            Traffic::of("Last 30 days", &traffic.last_30_days, currency),
        ],
        currency: currency.clone(),
        credit,
        limits,
        ledger: entries
            .iter()
            .map(|entry| Entry::of(entry, currency))
            .collect(),
        older: last.map(|id| format!("{}?before={id}", address(account.id, None))),
        is_later_page: look.before.is_some(),
    })
}

impl Traffic {
    fn of(when: &'static str, totals: &Totals, currency: &str) -> Self {
        Self {
            when,
            sent: count(totals.sent),
            delivered: count(totals.delivered),
            failed: count(totals.failed),
            expired: count(totals.expired),
            cost: money(totals.cost, currency),
        }
    }
}

impl Entry {
    fn of(entry: &LedgerEntry, currency: &str) -> Self {
        let sign = if entry.amount > Money::ZERO { "+" } else { "" };
        Self {
            at: entry.at.into(),
            kind: entry.kind.name(),
            amount: format!("{sign}{}", money(entry.amount, currency)),
            balance: money(entry.balance, currency),
            messages: match entry.messages {
                0 => String::new(),
                messages => count(messages.into()),
            },
            note: entry.note.clone().unwrap_or_default(),
        }
    }
}

impl Values {
    fn of(rules: &SpendingRules) -> Self {
        let cap = rules.daily_cap.map(|cap| cap.to_string());
        let per_hour = rules.per_recipient_hour.map(|limit| limit.to_string());
        Self {
            credit_limit: rules.credit_limit.to_string(),
            daily_cap: cap.unwrap_or_default(),
            per_recipient_hour: per_hour.unwrap_or_default(),
            countries: rules.countries.to_string(),
            approved_senders_only: rules.approved_senders_only,
        }
    }

    /// As the form brings them back.
    fn carried(form: &Form) -> Self {
        let carried = |name: &str| form.get(name).unwrap_or_default().to_owned();
        Self {
            credit_limit: carried("was_credit_limit"),
            daily_cap: carried("was_daily_cap"),
            per_recipient_hour: carried("was_per_recipient_hour"),
            countries: carried("was_countries"),
            approved_senders_only: form.get("was_approved_senders_only") == Some("true"),
        }
    }
}

impl Limits {
    fn of(rules: &SpendingRules) -> Self {
        let now = Values::of(rules);
        Self {
            credit_limit: Field::with(&*now.credit_limit),
            daily_cap: Field::with(&*now.daily_cap),
            per_recipient_hour: Field::with(&*now.per_recipient_hour),
            countries: Field::with(&*now.countries),
            approved_senders_only: now.approved_senders_only,
            before: now,
        }
    }

    fn typed(form: &Form) -> Self {
        Self {
            before: Values::carried(form),
            credit_limit: Field::typed(form, "credit_limit"),
            daily_cap: Field::typed(form, "daily_cap"),
            per_recipient_hour: Field::typed(form, "per_recipient_hour"),
            countries: Field::typed(form, "countries"),
            approved_senders_only: form.get("approved_senders_only").is_some(),
        }
    }

    /// What was changed; fields that cannot be read say so from then on.
    fn changes(&mut self) -> Vec<RuleChange> {
        let before = &self.before;
        let fields = [
            (
                "credit_limit",
                "0",
                &mut self.credit_limit,
                &before.credit_limit,
            ),
            ("daily_cap", "off", &mut self.daily_cap, &before.daily_cap),
            (
                "per_recipient_hour",
                "off",
                &mut self.per_recipient_hour,
                &before.per_recipient_hour,
            ),
            ("countries", "all", &mut self.countries, &before.countries),
        ];
        let mut changes = Vec::new();
        for (key, none, field, before) in fields {
            if field.text == *before {
                continue;
            }
            let value = if field.text.is_empty() {
                none
            } else {
                &field.text
            };
            match format!("{key}={value}").parse::<RuleChange>() {
                Ok(change) => changes.push(change),
                Err(problem) => field.problem = Some(problem),
            }
        }
        if self.approved_senders_only != self.before.approved_senders_only {
            changes.push(RuleChange::ApprovedSendersOnly(self.approved_senders_only));
        }
        changes
    }

    fn has_problem(&self) -> bool {
        let fields = [
            &self.credit_limit,
            &self.daily_cap,
            &self.per_recipient_hour,
            &self.countries,
        ];
        fields.iter().any(|field| field.problem.is_some())
    }
}
