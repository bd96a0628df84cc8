//! The search in the header: messages by ID or number, accounts and tokens by name.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::ports::Cursor;
use domain::{AccountId, MessageId, Msisdn, Role};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Session;
use crate::pages::operator::in_address;

const MAX_OF_A_KIND: u32 = 10;
const MIN_NUMBER_DIGITS: usize = 7;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new().route("/dashboard/search", get(show))
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    asked: String,
    found: Vec<Found>,
}

/// Something that was found, or a list where it may be.
struct Found {
    kind: &'static str,
    name: String,
    address: String,
}

impl Found {
    fn new(kind: &'static str, name: impl Into<String>, address: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            address: address.into(),
        }
    }
}

/// Leads to the only result, or lists several.
async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    query: Query,
) -> Result<Response, Failure> {
    let asked = query.text("q").to_owned();
    let mut found = Vec::new();
    if !asked.is_empty() {
        found.extend(dashboard.find_by_id(&session, &asked).await?);
        // The IDs of messages may be as long as phone numbers. Those that exist are hardly ever meant as numbers.
        if found.is_empty() {
            found.extend(lists_for_number(&session, &asked));
        }
        found.extend(dashboard.find_accounts(&session, &asked).await?);
        found.extend(dashboard.find_tokens(&session, &asked).await?);
    }
    if let [only] = &found[..] {
        return Ok(Redirect::to(&only.address).into_response());
    }
    let page = SearchPage {
        frame: session.frame(),
        asked,
        found,
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// The lists of messages to and from a number.
fn lists_for_number(session: &Session, asked: &str) -> Vec<Found> {
    let digits = asked.chars().filter(char::is_ascii_digit).count();
    let Ok(number) = Msisdn::parse(asked) else {
        return Vec::new();
    };
    if digits < MIN_NUMBER_DIGITS {
        return Vec::new();
    }
    let (text, query) = (number.to_string(), in_address(&number.to_string()));
    let mut found = Vec::new();
    if session.signed_in.account().is_some() {
        let messages = format!("/dashboard/messages?to={query}");
        let inbox = format!("/dashboard/inbox?from={query}");
        found.push(Found::new("Messages to", text.clone(), messages));
        found.push(Found::new("Messages from", text.clone(), inbox));
    }
    if session.is_operator() {
        let all = format!("/dashboard/operator/messages?to={query}");
        found.push(Found::new("Messages of all accounts to", text, all));
    }
    found
}

impl Dashboard {
    async fn find_by_id(&self, session: &Session, asked: &str) -> Result<Option<Found>, Failure> {
        let Ok(id) = asked.parse::<MessageId>() else {
            return Ok(None);
        };
        let (own, is_operator) = (session.signed_in.account(), session.is_operator());
        let account: Option<AccountId> = match own {
            _ if is_operator => None,
            Some(own) => Some(own),
            None => return Ok(None),
        };
        let found = self.engine.history.find_message_detail(account, id).await?;
        Ok(found.map(|found| {
            let pages = if own == Some(found.summary.account) {
                "/dashboard/messages"
            } else {
                "/dashboard/operator/messages"
            };
            Found::new("Message", id.to_string(), format!("{pages}/{id}"))
        }))
    }

    async fn find_accounts(&self, session: &Session, asked: &str) -> Result<Vec<Found>, Failure> {
        if !session.is_operator() {
            return Ok(Vec::new());
        }
        let cursor = Cursor {
            before: None,
            limit: MAX_OF_A_KIND,
        };
        let accounts = self.engine.accounts.search(Some(asked), cursor).await?;
        let row = |id: AccountId, name: String| {
            Found::new(
                "Account",
                name,
                format!("/dashboard/operator/accounts/{id}"),
            )
        };
        let rows = accounts.rows.into_iter();
        Ok(rows.map(|account| row(account.id, account.name)).collect())
    }

    /// Tokens of the own account, for those who manage them.
    async fn find_tokens(&self, session: &Session, asked: &str) -> Result<Vec<Found>, Failure> {
        let Some(account) = session.signed_in.account() else {
            return Ok(Vec::new());
        };
        if session.signed_in.role() == Role::Member {
            return Ok(Vec::new());
        }
        let asked = asked.to_lowercase();
        let tokens = self.engine.accounts.list_tokens(Some(account)).await?;
        let matching = tokens.into_iter().filter(|token| {
            let name = token.access.name.to_lowercase();
            name.contains(&asked)
        });
        let matching = matching.take(MAX_OF_A_KIND as usize);
        let found = matching.map(|token| {
            let address = format!("/dashboard/settings/api#token-{}", token.id);
            Found::new("Token", token.access.name, address)
        });
        Ok(found.collect())
    }
}
