//! The monthly statement of an account: a page to print, and CSV.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use domain::{AccountId, Country, Network};
use engine::reading::statement::{Month, Statement, StatementLine};
use http::StatusCode;

use super::operator::find_account;
use crate::Dashboard;
use crate::kit::downloads;
use crate::kit::failure::Failure;
use crate::kit::format::{count, money};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Operator};

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/statement", get(show))
        .route("/dashboard/statement.csv", get(download))
        .route("/dashboard/operator/accounts/{id}/statement", get(show_any))
        .route(
            "/dashboard/operator/accounts/{id}/statement.csv",
            get(download_any),
        )
}

#[derive(Template)]
#[template(path = "statement.html")]
struct StatementPage {
    frame: Frame,
    /// The address of this page, without the month.
    here: String,
    account: String,
    month: String,
    previous: String,
    /// `None` in the running month.
    next: Option<String>,
    is_complete: bool,
    balance: Vec<BalanceRow>,
    lines: Vec<LineRow>,
    in_progress: String,
    total: String,
}

struct BalanceRow {
    words: &'static str,
    messages: String,
    amount: String,
    is_total: bool,
}

struct LineRow {
    channel: &'static str,
    country: &'static str,
    network: String,
    messages: String,
    parts: String,
    amount: String,
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let account = (member.account.id, member.account.name.as_str());
    let statement = dashboard.statement(account, &query).await?;
    let page = dashboard.statement_page(member.frame(), "/dashboard/statement", &statement);
    Ok(show_page(StatusCode::OK, &page))
}

async fn download(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let account = (member.account.id, member.account.name.as_str());
    Ok(csv(&dashboard.statement(account, &query).await?))
}

async fn show_any(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response, Failure> {
    let account = find_account(&dashboard, &operator, &id).await?;
    let statement = dashboard
        .statement((account.id, &account.name), &query)
        .await?;
    let here = format!("/dashboard/operator/accounts/{}/statement", account.id);
    let page = dashboard.statement_page(operator.frame(), &here, &statement);
    Ok(show_page(StatusCode::OK, &page))
}

async fn download_any(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response, Failure> {
    let account = find_account(&dashboard, &operator, &id).await?;
    let statement = dashboard.statement((account.id, &account.name), &query);
    Ok(csv(&statement.await?))
}

fn csv(statement: &Statement) -> Response {
    let name = format!("statement-{}.csv", statement.month);
    downloads::file(&name, "text/csv; charset=utf-8", statement.to_csv())
}

impl Dashboard {
    /// The statement of the month in the query, or of the running month.
    async fn statement(
        &self,
        account: (AccountId, &str),
        query: &Query,
    ) -> Result<Statement, Failure> {
        let now = self.engine.now();
        let running = Month::of(now);
        let month = match query.get("month") {
            Some(month) => month.parse().map_err(|_| Failure::Form)?,
            None => running,
        };
        let permit = self.downloads.permit(Some(account.0));
        let _permit = permit.map_err(Failure::Page)?;
        let statements = &self.engine.statements;
        let currency = &self.settings.currency;
        Ok(statements
            .statement(account, month.min(running), currency, now)
            .await?)
    }

    fn statement_page(&self, frame: Frame, here: &str, statement: &Statement) -> StatementPage {
        let currency = &self.settings.currency;
        let month = statement.month;
        let row = |(item, messages, amount): (&'static str, Option<u64>, _)| BalanceRow {
            words: words(item),
            messages: messages.map(count).unwrap_or_default(),
            amount: money(amount, currency),
            is_total: item.ends_with("_balance"),
        };
        let line = |line: &StatementLine| LineRow {
            channel: line.channel.name(),
            country: line.country.map_or("Unknown", Country::short_name),
            network: self.network_words(line.network),
            messages: count(line.messages),
            parts: count(line.parts),
            amount: money(line.amount, currency),
        };
        StatementPage {
            frame,
            here: here.to_owned(),
            account: statement.account.clone(),
            month: month.to_string(),
            previous: month.previous().to_string(),
            next: statement.is_complete.then(|| month.next().to_string()),
            is_complete: statement.is_complete,
            balance: statement.balance_rows().into_iter().map(row).collect(),
            lines: statement.lines.iter().map(line).collect(),
            in_progress: money(statement.in_progress(), currency),
            total: money(statement.ended().plus(statement.in_progress()), currency),
        }
    }

    fn network_words(&self, network: Option<Network>) -> String {
        let Some(network) = network else {
            return "Unknown".to_owned();
        };
        let live = self.engine.catalogues.live();
        let entry = live.reference.find_network(network).next();
        entry.map_or_else(|| network.to_string(), |entry| entry.name.to_string())
    }
}

fn words(item: &str) -> &'static str {
    match item {
        "opening_balance" => "Opening balance",
        "credits" => "Credits",
        "corrections" => "Corrections",
        "charges" => "Charges for accepted messages",
        "refunds" => "Refunds for messages that were not sent",
        "inbound" => "Messages from handsets",
        "verifications" => "Approved verifications",
        _ => "Closing balance",
    }
}
