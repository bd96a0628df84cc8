//! Scheduled messages, and cancelling them.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use domain::message::{MessageState, ScheduledRecord};
use domain::ports::{Cancel, MessageDetail};
use domain::{MessageId, Timestamp};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{HIDDEN, Moment, money, number, shorten};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};

const PAGE_SIZE: u32 = 50;
const TEXT_CHARS: usize = 80;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/scheduled", get(list))
        .route("/dashboard/scheduled/{id}", get(ask).post(cancel))
}

#[derive(Template)]
#[template(path = "scheduled/list.html")]
struct ScheduledPage {
    frame: Frame,
    rows: Vec<ScheduledRow>,
    later: Option<String>,
    is_first: bool,
}

struct ScheduledRow {
    id: u64,
    at: Moment,
    from: String,
    to: String,
    text: String,
}

impl ScheduledRow {
    fn new(message: &ScheduledRecord, sees_texts: bool) -> Self {
        let text = if sees_texts { &message.text } else { HIDDEN };
        Self {
            id: message.id.get(),
            at: message.at.into(),
            from: message.from.clone(),
            to: message.to.to_string(),
            text: shorten(text, TEXT_CHARS),
        }
    }
}

async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let frame = match member.said(&query) {
        Some("cancelled") => member
            .frame()
            .with_success("Cancelled. It will not be sent, and its price was refunded."),
        _ => member.frame(),
    };
    let after = query.get("after").and_then(read_key);
    let messages = &dashboard.engine.messages;
    // One more row than the page shows tells whether there is a next page.
    let mut found = messages
        .list_scheduled_after(member.account.id, after, PAGE_SIZE + 1)
        .await?;
    let has_more = found.len() > PAGE_SIZE as usize;
    found.truncate(PAGE_SIZE as usize);
    let last = found.last().filter(|_| has_more).map(key);
    let page = ScheduledPage {
        frame,
        rows: found
            .iter()
            .map(|message| ScheduledRow::new(message, member.sees_texts()))
            .collect(),
        later: last.map(|key| query.address_with("after", Some(&key))),
        is_first: after.is_none(),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// The cursor: send time and ID of the last message on the page.
fn key(message: &ScheduledRecord) -> String {
    format!("{}-{}", message.at.as_microsecond(), message.id)
}

fn read_key(text: &str) -> Option<(Timestamp, MessageId)> {
    let (micros, id) = text.split_once('-')?;
    let time = Timestamp::from_microsecond(micros.parse().ok()?).ok()?;
    Some((time, id.parse().ok()?))
}

#[derive(Template)]
#[template(path = "scheduled/cancel.html")]
struct CancelPage {
    frame: Frame,
    id: u64,
    at: Moment,
    from: String,
    to: String,
    text: String,
    price: String,
}

async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
) -> Result<Response, Failure> {
    let detail = find(&dashboard, &member, &id).await?;
    let message = detail.summary;
    let MessageState::Scheduled { at } = message.state else {
        return Ok(too_late(&member, message.id, message.state));
    };
    let page = CancelPage {
        frame: member.frame(),
        id: message.id.get(),
        at: at.into(),
        from: message.from.unwrap_or_default(),
        to: number(message.to),
        text: if member.sees_texts() {
            message.text
        } else {
            HIDDEN.to_owned()
        },
        price: money(message.price, &dashboard.settings.currency),
    };
    Ok(show_page(StatusCode::OK, &page))
}

async fn find(dashboard: &Dashboard, member: &Member, id: &str) -> Result<MessageDetail, Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let id: MessageId = id.parse().map_err(|_| missing())?;
    let history = &dashboard.engine.history;
    let detail = history
        .find_message_detail(Some(member.account.id), id)
        .await?;
    detail.ok_or_else(missing)
}

#[derive(Template)]
#[template(path = "scheduled/too_late.html")]
struct TooLatePage {
    frame: Frame,
    id: u64,
    state: &'static str,
    words: &'static str,
}

fn too_late(member: &Member, id: MessageId, state: MessageState) -> Response {
    let words = match state {
        MessageState::Scheduled { .. } | MessageState::Queued | MessageState::Sent => {
            "It is already being sent and can no longer be cancelled."
        }
        MessageState::Ended { .. } => "It was sent before you could cancel it.",
        MessageState::Cancelled { .. } => "It was already cancelled.",
    };
    let page = TooLatePage {
        frame: member.frame(),
        id: id.get(),
        state: state.name(),
        words,
    };
    show_page(StatusCode::CONFLICT, &page)
}

async fn cancel(
    State(dashboard): State<Arc<Dashboard>>,
    Path(id): Path<String>,
    member: Member,
    _form: Posted,
) -> Result<Response, Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let id: MessageId = id.parse().map_err(|_| missing())?;
    let messages = &dashboard.engine.messages;
    match messages.cancel(member.account.id, id).await? {
        Cancel::Done => Ok(member.redirect_saying("/dashboard/scheduled", "cancelled")),
        Cancel::NotWaiting(state) => Ok(too_late(&member, id, state)),
        Cancel::Unknown => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_time_and_an_id() {
        for (text, is_key) in [
            ("1700000000000000-7", true),
            ("0-1", true),
            ("7", false),
            ("x-7", false),
            ("1-0", false),
            ("99999999999999999999-1", false),
        ] {
            assert_eq!(read_key(text).is_some(), is_key, "{text}");
        }
    }
}
