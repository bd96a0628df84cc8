//! The numbers that handsets send to: which account has them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::CallbackUrl;
use domain::inbound::number::InboundNumber;
use domain::ports::{NumberEntry, OwnedNumber};
use engine::identity::accounts::AccountError;
use engine::inbound::AddNumberError;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::FormInput;
use crate::kit::format::count;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};

const HERE: &str = "/dashboard/operator/numbers";
const NUMBER: &str = "number";
const ACCOUNT: &str = "account";
const KEYWORD: &str = "keyword";
const URL: &str = "url";
const FIELDS: [&str; 4] = [NUMBER, ACCOUNT, KEYWORD, URL];
/// Only so many numbers are shown; the command line lists all.
const SHOWN: usize = 500;

#[derive(Template)]
#[template(path = "operator/numbers.html")]
struct NumbersPage {
    frame: Frame,
    input: FormInput,
    rows: Vec<NumberRow>,
    /// How many numbers are not shown.
    hidden: Option<String>,
}

struct NumberRow {
    number: String,
    keyword: Option<String>,
    account: u64,
    account_name: String,
    url: Option<String>,
    /// Whether the URL is that of the account.
    is_account_url: bool,
}

impl NumberRow {
    fn new(number: &OwnedNumber) -> Self {
        let entry = &number.entry;
        let url = entry.url.as_ref().or(number.account_url.as_ref());
        Self {
            number: entry.number.to_string(),
            keyword: entry.keyword.clone(),
            account: entry.account.get(),
            account_name: number.account_name.clone(),
            url: url.map(CallbackUrl::as_str).map(str::to_owned),
            is_account_url: entry.url.is_none(),
        }
    }
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let frame = operator.frame();
    let frame = match operator.said(&query) {
        Some("added") => frame.with_success("The number was added. Texts to it go to its account."),
        Some("removed") => frame.with_success("The number was removed."),
        _ => frame,
    };
    // The page of unclaimed messages links here with a number.
    let value = |name: &&'static str| (*name, query.text(name).to_owned());
    let input = FormInput::with_defaults(FIELDS.iter().map(value).collect());
    page(&dashboard, frame, input).await
}

async fn page(dashboard: &Dashboard, frame: Frame, input: FormInput) -> Result<Response, Failure> {
    let status = if input.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let numbers = dashboard.engine.numbers.list().await?;
    let hidden = numbers.len().saturating_sub(SHOWN);
    let page = NumbersPage {
        frame,
        input,
        rows: numbers.iter().take(SHOWN).map(NumberRow::new).collect(),
        hidden: (hidden > 0).then(|| count(hidden as u64)),
    };
    Ok(show_page(status, &page))
}

pub(super) async fn add(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let mut input = FormInput::from_form(&form, &FIELDS);
    if let Some(entry) = read_entry(&dashboard, &mut input).await? {
        let numbers = &dashboard.engine.numbers;
        match numbers.add(&operator.by(), &entry).await {
            Ok(()) => return Ok(operator.redirect_saying(HERE, "added")),
            Err(AddNumberError::Store(error)) => return Err(error.into()),
            Err(problem @ AddNumberError::Keyword) => input.refuse(KEYWORD, problem),
            Err(problem @ AddNumberError::Taken(_)) => input.refuse(NUMBER, problem),
            Err(problem @ AddNumberError::Url(_)) => input.refuse(URL, problem),
        }
    }
    page(&dashboard, operator.frame(), input).await
}

/// Reads the fields of an entry. Invalid ones get a problem.
async fn read_entry(
    dashboard: &Dashboard,
    input: &mut FormInput,
) -> Result<Option<NumberEntry>, Failure> {
    let number = InboundNumber::parse(input.text(NUMBER));
    let url = input.given(URL).map(CallbackUrl::parse).transpose();
    let account = match dashboard.engine.accounts.get(input.text(ACCOUNT)).await {
        Err(AccountError::Store(error)) => return Err(error.into()),
        account => account,
    };
    match (number, account, url) {
        (Ok(number), Ok(account), Ok(url)) => Ok(Some(NumberEntry {
            number,
            keyword: input.given(KEYWORD).map(str::to_owned),
            account: account.id,
            url,
        })),
        (number, account, url) => {
            if let Err(problem) = number {
                input.refuse(NUMBER, problem);
            }
            if account.is_err() {
                input.refuse(ACCOUNT, "there is no account of this name; see Accounts");
            }
            if let Err(problem) = url {
                input.refuse(URL, problem);
            }
            Ok(None)
        }
    }
}

pub(super) async fn remove(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let (number, keyword) = read_key(&form)?;
    let title = match &keyword {
        Some(keyword) => format!("Remove the number {number} with the keyword {keyword}?"),
        None => format!("Remove the number {number}?"),
    };
    operator.ask(
        &form,
        &Question {
            title: &title,
            text: "Its account gets no more texts sent to it. Texts that no account gets are listed as unclaimed.",
            button: "Remove",
            back: HERE,
            is_dangerous: true,
        },
    )?;
    // Somebody else may have removed it already, which is what this person wants, too.
    let numbers = &dashboard.engine.numbers;
    let by = operator.by();
    numbers.remove(&by, &number, keyword.as_deref()).await?;
    Ok(operator.redirect_saying(HERE, "removed"))
}

fn read_key(form: &Form) -> Result<(InboundNumber, Option<String>), Failure> {
    let number = InboundNumber::parse(form.get(NUMBER).unwrap_or_default());
    let keyword = form.get(KEYWORD).filter(|keyword| !keyword.is_empty());
    let number = number.map_err(|_| Failure::Form)?;
    Ok((number, keyword.map(str::to_owned)))
}
