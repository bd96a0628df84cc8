//! The numbers of an account. Operators give and take them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::CallbackUrl;
use domain::ports::OwnedNumber;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::count;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Member;

/// Only so many numbers are shown.
const SHOWN: usize = 500;

#[derive(Template)]
#[template(path = "inbox/numbers.html")]
struct NumbersPage {
    frame: Frame,
    rows: Vec<NumberRow>,
    /// How many numbers are not shown.
    hidden: Option<String>,
}

struct NumberRow {
    number: String,
    keyword: Option<String>,
    url: Option<String>,
}

impl NumberRow {
    fn new(number: &OwnedNumber) -> Self {
        let url = number.entry.url.as_ref().or(number.account_url.as_ref());
        Self {
            number: number.entry.number.to_string(),
            keyword: number.entry.keyword.clone(),
            url: url.map(CallbackUrl::as_str).map(str::to_owned),
        }
    }
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
) -> Result<Response, Failure> {
    let numbers = &dashboard.engine.numbers;
    let owned = numbers.list_of(member.account.id).await?;
    let hidden = owned.len().saturating_sub(SHOWN);
    let page = NumbersPage {
        frame: member.frame(),
        rows: owned.iter().take(SHOWN).map(NumberRow::new).collect(),
        hidden: (hidden > 0).then(|| count(hidden as u64)),
    };
    Ok(show_page(StatusCode::OK, &page))
}
