//! One account: balance, limits, and suspending it.

mod limits;

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::billing::{EntryKind, LedgerEntry, SpendingRules};
use domain::note::Note;
use domain::ports::{AccountRecord, Cursor};
use domain::{AccountId, Money};
use engine::identity::accounts::AccountError;
use engine::reading::traffic::Totals;
use http::StatusCode;
use jiff::SignedDuration;
use url::form_urlencoded;

use super::{Field, PAGE_SIZE};
use crate::Dashboard;
use crate::kit::browser::random_key;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::format::{Amount, Moment, count, money};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};
use limits::LimitsForm;

#[derive(Template)]
#[template(path = "operator/account.html")]
struct AccountPage {
    frame: Frame,
    id: u64,
    name: String,
    name_in_address: String,
    is_suspended: bool,
    /// Whether the operator can act for the account: the session of the first link cannot.
    may_act: bool,
    created: Moment,
    balance: Amount,
    available: Amount,
    tokens: String,
    traffic: Vec<TrafficRow>,
    currency: String,
    credit: CreditForm,
    limits: LimitsForm,
    ledger: Vec<LedgerRow>,
    older: Option<String>,
    is_later: bool,
}

struct TrafficRow {
    when: &'static str,
    sent: String,
    delivered: String,
    failed: String,
    expired: String,
    cost: Amount,
}

/// The form that changes the balance.
#[derive(Default)]
struct CreditForm {
    amount: Field,
    note: Field,
    /// Idempotency key, so that a form sent twice counts once.
    once: String,
}

impl CreditForm {
    fn new() -> Self {
        Self {
            once: random_key(),
            ..Self::default()
        }
    }
}

struct LedgerRow {
    at: Moment,
    kind: &'static str,
    amount: String,
    balance: Amount,
    messages: String,
    /// The list with these messages.
    found_at: Option<String>,
    note: String,
}

pub(super) fn address(id: AccountId) -> String {
    format!("/dashboard/operator/accounts/{id}")
}

fn done_message(done: &str) -> Option<&'static str> {
    match done {
        "created" => Some(
            "The account was created. Invite an admin under All people, or create a token for it below.",
        ),
        "credited" => Some("The balance was changed."),
        "limited" => Some("The limits were changed."),
        "suspended" => {
            Some("The account is suspended. Every node refuses its tokens within a second.")
        }
        "resumed" => Some("The account is active again."),
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
    let limits = LimitsForm::new(&account.rules);
    let mut frame = operator.frame();
    if let Some(words) = operator.said(&query).and_then(done_message) {
        frame = frame.with_success(words);
    }
    let built = build(
        &dashboard,
        frame,
        &account,
        &query,
        CreditForm::new(),
        limits,
    );
    Ok(show_page(StatusCode::OK, &built.await?))
}

/// Adds or takes off money.
pub(super) async fn credit(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let account = find(&dashboard, &operator, &id).await?;
    let mut credit = CreditForm {
        amount: Field::typed(&form, "amount"),
        note: Field::typed(&form, "note"),
        once: form.get("once").unwrap_or_default().to_owned(),
    };
    if credit.once.is_empty() {
        return Err(Failure::Form);
    }
    let has_note_problem = match credit.note.text.parse::<Note>() {
        Ok(_) => false,
        Err(problem) => {
            credit.note = credit.note.refused(&problem);
            true
        }
    };
    let problem = match read_amount(&credit.amount.text) {
        Err(problem) => Some(problem),
        Ok(_) if has_note_problem => None,
        Ok(amount) => {
            ask_to_credit(&dashboard, &operator, &account, amount, &mut form).await?;
            let note = Some(credit.note.text.as_str()).filter(|note| !note.is_empty());
            let accounts = &dashboard.engine.accounts;
            match accounts
                .credit(
                    &operator.by(),
                    &account.name,
                    amount,
                    note,
                    Some(&credit.once),
                )
                .await
            {
                Ok(_) => {
                    return Ok(operator.redirect_saying(&address(account.id), "credited"));
                }
                Err(AccountError::Store(error)) => return Err(error.into()),
                Err(problem) => Some(problem.to_string()),
            }
        }
    };
    if let Some(problem) = problem {
        credit.amount = credit.amount.refused(&problem);
    }
    credit.once = random_key();
    let limits = LimitsForm::new(&account.rules);
    refuse(&dashboard, &operator, &account, credit, limits).await
}

fn read_amount(typed: &str) -> Result<Money, String> {
    let amount = typed.strip_prefix('+').unwrap_or(typed).parse::<Money>();
    match amount {
        Ok(Money::ZERO) => Err(
            "This changes nothing; give an amount above zero, or below zero to deduct money."
                .to_owned(),
        ),
        Ok(amount) => Ok(amount),
        Err(problem) => Err(problem.to_string()),
    }
}

/// Shows the balance afterwards, so that a wrong sign or too many zeros are noticed.
async fn ask_to_credit(
    dashboard: &Dashboard,
    operator: &Operator,
    account: &AccountRecord,
    amount: Money,
    form: &mut Form,
) -> Result<(), Failure> {
    let words = |amount| money(amount, &dashboard.settings.currency);
    let (before, after) = (account.balance, account.balance.plus(amount));
    let text = format!(
        "The balance is {}. Afterwards it is {}.",
        words(before),
        words(after)
    );
    let (title, button) = if amount < Money::ZERO {
        let taken = words(Money::ZERO.minus(amount));
        (format!("Take {taken} from {}?", account.name), "Take")
    } else {
        (format!("Add {} to {}?", words(amount), account.name), "Add")
    };
    let question = Question {
        title: &title,
        text: &text,
        button,
        back: &address(account.id),
        is_dangerous: true,
    };
    operator.ask_for_password(dashboard, form, &question).await
}

/// Changes only the limits that were edited; somebody else may have changed the others in the meantime.
pub(super) async fn set_limits(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let account = find(&dashboard, &operator, &id).await?;
    let mut limits = LimitsForm::from_form(&form);
    let changes = limits.changes();
    if limits.has_problem() {
        return refuse(&dashboard, &operator, &account, CreditForm::new(), limits).await;
    }
    if !changes.is_empty() {
        let question = Question {
            title: &format!("Change the limits of {}?", account.name),
            text: "They decide what the account may spend and where it may send.",
            button: "Save",
            back: &address(account.id),
            is_dangerous: false,
        };
        operator
            .ask_for_password(&dashboard, &mut form, &question)
            .await?;
        let apply = |rules: &mut SpendingRules| {
            for change in &changes {
                change.clone().apply(rules);
            }
        };
        let accounts = &dashboard.engine.accounts;
        let is_set = accounts
            .set_rules(&operator.by(), &account.name, apply)
            .await;
        is_set.map_err(|error| gone(&operator, error))?;
    }
    Ok(operator.redirect_saying(&address(account.id), "limited"))
}

/// Suspends or resumes the account.
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
    let back = address(account.id);
    operator.ask(
        &form,
        &Question {
            title: &format!("Suspend the account {}?", account.name),
            text: "Its tokens are refused until you resume it, and its people cannot send.",
            button: "Suspend",
            back: &back,
            is_dangerous: suspended,
        },
    )?;
    let accounts = &dashboard.engine.accounts;
    let changed = accounts
        .set_suspended(&operator.by(), &account.name, suspended)
        .await;
    changed.map_err(|error| gone(&operator, error))?;
    Ok(operator.redirect_saying(&address(account.id), done))
}

pub(in crate::pages) async fn find(
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

/// The account existed a moment ago, so any other error is reported as not found.
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
    credit: CreditForm,
    limits: LimitsForm,
) -> Result<Response, Failure> {
    let frame = operator.frame().with_problem("Nothing was changed.");
    let query = Query::default();
    let page = build(dashboard, frame, account, &query, credit, limits).await?;
    Ok(show_page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn build(
    dashboard: &Dashboard,
    frame: Frame,
    account: &AccountRecord,
    query: &Query,
    credit: CreditForm,
    limits: LimitsForm,
) -> Result<AccountPage, Failure> {
    let accounts = &dashboard.engine.accounts;
    let cursor = Cursor {
        before: query.get("before").and_then(|id| id.parse().ok()),
        limit: PAGE_SIZE,
    };
    let entries = accounts.ledger_page(account.id, cursor).await?;
    let tokens = accounts.list_tokens(Some(account.id)).await?.len();
    let now = dashboard.engine.now();
    let traffic = dashboard
        .engine
        .traffic
        .overview(Some(account.id), now)
        .await?;
    let is_full = entries.len() >= PAGE_SIZE as usize;
    let last = entries
        .last()
        .filter(|_| is_full)
        .map(|entry| entry.id.to_string());
    let currency = &dashboard.settings.currency;
    let available = account.balance.plus(account.rules.credit_limit);
    let may_act = frame.who.as_ref().is_some_and(|who| who.is_person);
    Ok(AccountPage {
        frame,
        id: account.id.get(),
        name: account.name.clone(),
        name_in_address: super::in_address(&account.name),
        is_suspended: account.suspended,
        may_act,
        created: account.created_at.into(),
        balance: Amount::new(account.balance, currency),
        available: Amount::new(available.max(Money::ZERO), currency),
        tokens: count(tokens as u64),
        traffic: vec![
            TrafficRow::new("Today, UTC", &traffic.today, currency),
            TrafficRow::new("Last 7 days", &traffic.last_7_days, currency),
            TrafficRow::new("Last 30 days", &traffic.last_30_days, currency),
        ],
        currency: currency.clone(),
        credit,
        limits,
        ledger: entries
            .iter()
            .map(|entry| LedgerRow::new(entry, &account.name, currency))
            .collect(),
        older: last.map(|id| format!("{}?before={id}", address(account.id))),
        is_later: cursor.before.is_some(),
    })
}

impl TrafficRow {
    fn new(when: &'static str, totals: &Totals, currency: &str) -> Self {
        Self {
            when,
            sent: count(totals.sent),
            delivered: count(totals.delivered),
            failed: count(totals.failed),
            expired: count(totals.expired),
            cost: Amount::new(totals.cost, currency),
        }
    }
}

impl LedgerRow {
    fn new(entry: &LedgerEntry, account: &str, currency: &str) -> Self {
        let sign = if entry.amount > Money::ZERO { "+" } else { "" };
        Self {
            at: entry.at.into(),
            kind: entry.kind.name(),
            amount: format!("{sign}{}", money(entry.amount, currency)),
            balance: Amount::new(entry.balance, currency),
            messages: match entry.messages {
                0 => String::new(),
                messages => count(messages.into()),
            },
            found_at: (entry.messages > 0 && entry.kind != EntryKind::Verification)
                .then(|| messages_address(entry, account)),
            note: entry.note.clone().unwrap_or_default(),
        }
    }
}

/// The list of the messages of an entry. One entry is for all messages that were stored or ended together: charged
/// messages were accepted at that time, refunded ones before it.
fn messages_address(entry: &LedgerEntry, account: &str) -> String {
    let at = |seconds: i64| {
        let time = entry.at.saturating_add(SignedDuration::from_secs(seconds));
        time.unwrap_or(entry.at)
            .strftime("%Y-%m-%dT%H:%M:%S")
            .to_string()
    };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("account", account);
    if entry.kind == EntryKind::Charge {
        query.append_pair("since", &at(-1));
    }
    query.append_pair("until", &at(2));
    format!("/dashboard/operator/messages?{}", query.finish())
}
