//! A list of inbound messages.

use askama::Template;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::message::text::Coding;
use domain::ports::{Cursor, InboundOwner};

use super::conversation;
use super::filter::Filters;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{HIDDEN, Moment, shorten};
use crate::kit::location::Locations;
use crate::kit::query::Query;

const PAGE_SIZE: u32 = 50;
const TEXT_CHARS: usize = 60;

/// The part with live updates.
#[derive(Template)]
#[template(path = "inbox/list.html")]
pub(crate) struct ListPart {
    pub(crate) list: InboundList,
}

pub(crate) struct InboundList {
    pub(crate) rows: Vec<InboundRow>,
    pub(crate) is_filtered: bool,
    /// The address of the next page.
    pub(crate) older: Option<String>,
}

pub(crate) struct InboundRow {
    pub(crate) id: String,
    pub(crate) page: String,
    pub(crate) at: Moment,
    pub(crate) from: String,
    /// The address of the conversation with the sender.
    pub(crate) conversation: Option<String>,
    pub(crate) location: String,
    pub(crate) to: String,
    pub(crate) text: String,
    pub(crate) tags: Vec<&'static str>,
}

/// Who reads a list, and where.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) owner: InboundOwner,
    pub(crate) sees_texts: bool,
    pub(crate) has_conversations: bool,
    /// The page of the list; those of its messages are below it.
    pub(crate) page: &'static str,
}

impl Dashboard {
    pub(crate) async fn inbound_list(
        &self,
        reader: Reader,
        filters: &Filters,
        query: &Query,
    ) -> Result<InboundList, Failure> {
        let is_filtered = filters.is_any;
        if !filters.problems.is_empty() {
            return Ok(InboundList {
                rows: Vec::new(),
                is_filtered,
                older: None,
            });
        }
        let cursor = Cursor {
            before: query.get("before").and_then(|id| id.parse().ok()),
            limit: PAGE_SIZE,
        };
        let filter = filters.for_owner(reader.owner);
        let found = self.engine.numbers.list_messages(&filter, cursor).await?;
        let catalogues = self.engine.catalogues.live();
        let locations = Locations::new(&catalogues);
        let next = found.next.map(|id| id.to_string());
        let rows = found.rows.iter();
        Ok(InboundList {
            rows: rows.map(|row| reader.row(row, &locations)).collect(),
            is_filtered,
            older: next.map(|id| query.address_with("before", Some(&id))),
        })
    }
}

impl Reader {
    fn row(self, message: &InboundMessage, locations: &Locations<'_>) -> InboundRow {
        let conversation = || conversation::address(&message.to, &message.from);
        InboundRow {
            id: message.id.to_string(),
            page: format!("{}/{}", self.page, message.id),
            at: message.received_at.into(),
            conversation: self.has_conversations.then(conversation),
            location: location(message, locations),
            from: message.from.clone(),
            to: message.to.to_string(),
            text: if self.sees_texts {
                shorten(&message.text, TEXT_CHARS)
            } else {
                HIDDEN.to_owned()
            },
            tags: tags(message),
        }
    }
}

fn location(message: &InboundMessage, locations: &Locations<'_>) -> String {
    match InboundNumber::parse(&message.from) {
        Ok(InboundNumber::Msisdn(number)) => locations.short(Some(&number), message.network),
        _ => locations.short(None, message.network),
    }
}

/// What is unusual about a message.
pub(super) fn tags(message: &InboundMessage) -> Vec<&'static str> {
    let binary = (message.coding == Coding::Binary).then_some("binary");
    let incomplete = message.is_incomplete.then_some("incomplete");
    binary.into_iter().chain(incomplete).collect()
}
