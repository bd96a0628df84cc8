//! A page of the list of messages: its rows, their order and their sums.

use std::collections::{BTreeSet, HashMap};

use domain::message::MessageState;
use domain::ports::{Cursor, MessageSummary, Page};
use domain::{AccountId, Channel, MessageId, Money, Role};
use engine::reading::found::paid;

use super::filter::Filters;
use super::found;
use crate::Dashboard;
use crate::kit::downloads::Holder;
use crate::kit::failure::Failure;
use crate::kit::format::{Amount, HIDDEN, Moment, StateLabel, count, money, number, shorten};
use crate::kit::location::Locations;
use crate::kit::query::Query;
use crate::kit::session::Member;

const PAGE_SIZE: u32 = 50;
const TEXT_CHARS: usize = 60;
/// The field with the column by which the page is sorted, with a minus if the largest comes first.
const SORT: &str = "sort";

pub(super) struct MessageList {
    pub(super) rows: Vec<MessageRow>,
    /// Whether the messages are those of all accounts.
    pub(super) is_for_all: bool,
    pub(super) is_filtered: bool,
    /// The address of the next page.
    pub(super) older: Option<String>,
    /// The oldest message that was searched, if the search stopped before the page was full.
    pub(super) looked_to: Option<String>,
    pub(super) sums: Sums,
    /// The file with all messages that the search finds.
    pub(super) file: String,
    /// The address of this page with the totals of all messages that the search finds.
    pub(super) totals: String,
    query: Query,
}

pub(super) struct MessageRow {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) at: Moment,
    pub(super) to: String,
    pub(super) location: String,
    pub(super) from: String,
    pub(super) text: String,
    pub(super) channel: Channel,
    pub(super) state: StateLabel,
    /// Number and words of the error.
    pub(super) error: Option<String>,
    pub(super) parts: u8,
    /// What was paid in the end.
    pub(super) price: String,
    pub(super) is_refunded: bool,
    pub(super) is_test: bool,
}

/// The sums of the rows of a page.
pub(super) struct Sums {
    pub(super) messages: String,
    pub(super) parts: String,
    pub(super) price: Amount,
}

/// Who reads the list.
#[derive(Clone, Copy)]
pub(super) enum Reader {
    /// A person of the account.
    Member {
        account: AccountId,
        sees_texts: bool,
    },
    /// An operator, who searches the messages of this account or of all.
    Operator(Option<AccountId>),
}

impl Reader {
    pub(super) fn member(member: &Member) -> Self {
        Self::Member {
            account: member.account.id,
            sees_texts: member.sees_texts(),
        }
    }

    /// Whose downloads these are.
    pub(super) fn holder(self) -> Holder {
        match self {
            Self::Member { account, .. } => Some(account),
            Self::Operator(_) => None,
        }
    }

    pub(super) fn account(self) -> Option<AccountId> {
        match self {
            Self::Member { account, .. } => Some(account),
            Self::Operator(account) => account,
        }
    }
}

/// The name of an account, and whether the reader sees its texts.
type Accounts = HashMap<AccountId, (String, bool)>;

impl MessageList {
    /// The page that shows a message of this list.
    pub(super) const fn base(&self) -> &'static str {
        if self.is_for_all {
            super::all::HERE
        } else {
            super::HERE
        }
    }

    /// The address of this page, sorted by a column; once more reverses the order.
    pub(super) fn sorted_address(&self, column: &str) -> String {
        let reversed = format!("-{column}");
        let order = match self.query.get(SORT) {
            Some(order) if order == column => reversed.as_str(),
            _ => column,
        };
        self.query.address_with(SORT, Some(order))
    }

    /// The order of a column, as `aria-sort` names it.
    pub(super) fn order_of(&self, column: &str) -> Option<&'static str> {
        let order = self.query.get(SORT)?;
        match order.strip_prefix('-') {
            Some(reversed) => (reversed == column).then_some("descending"),
            None => (order == column).then_some("ascending"),
        }
    }
}

/// Sorts the messages of a page; without a column the newest come first. The store finds messages by time only, so that
/// a page of a rare sort takes no longer than any other.
fn sort(messages: &mut [MessageSummary], order: Option<&str>) {
    let Some(order) = order else { return };
    let (column, is_reversed) = match order.strip_prefix('-') {
        Some(column) => (column, true),
        None => (order, false),
    };
    match column {
        "accepted" => messages.sort_by_key(|message| message.accepted_at),
        "state" => messages.sort_by_key(|message| message.state.name()),
        "to" => messages.sort_by_key(|message| message.to),
        "from" => messages.sort_by(|one, other| one.from.cmp(&other.from)),
        "parts" => messages.sort_by_key(|message| message.parts),
        "price" => messages.sort_by_key(paid),
        _ => return,
    }
    if is_reversed {
        messages.reverse();
    }
}

fn error(state: MessageState) -> Option<String> {
    let MessageState::Ended { outcome, .. } = state else {
        return None;
    };
    let entry = outcome.code().entry();
    (entry.number > 0).then(|| format!("{} {}", entry.number, entry.words))
}

impl Dashboard {
    pub(super) async fn list(
        &self,
        reader: Reader,
        filters: &Filters,
        query: &Query,
    ) -> Result<MessageList, Failure> {
        let found = if filters.problems.is_empty() {
            let cursor = Cursor {
                before: query.get("before").and_then(|id| id.parse().ok()),
                limit: PAGE_SIZE,
            };
            let filter = filters.of(reader.account());
            self.engine.history.search_messages(&filter, cursor).await?
        } else {
            Page {
                rows: Vec::new(),
                next: None,
            }
        };
        let accounts = self.accounts_of(reader, &found.rows).await?;
        Ok(self.message_list(found, reader, &accounts, filters, query))
    }

    /// Names are only needed by operators.
    async fn accounts_of(
        &self,
        reader: Reader,
        rows: &[MessageSummary],
    ) -> Result<Accounts, Failure> {
        let mut accounts = Accounts::new();
        if let Reader::Member {
            account,
            sees_texts,
        } = reader
        {
            accounts.insert(account, (String::new(), sees_texts));
            return Ok(accounts);
        }
        let ids: BTreeSet<AccountId> = rows.iter().map(|row| row.account).collect();
        for id in ids {
            if let Some(found) = self.engine.accounts.find_by_id(id).await? {
                let sees_texts = found.rules.texts_for.includes(Role::Operator);
                accounts.insert(id, (found.name, sees_texts));
            }
        }
        Ok(accounts)
    }

    fn message_list(
        &self,
        found: Page<MessageSummary, MessageId>,
        reader: Reader,
        accounts: &Accounts,
        filters: &Filters,
        query: &Query,
    ) -> MessageList {
        let Page { mut rows, next } = found;
        sort(&mut rows, query.get(SORT));
        let catalogues = self.engine.catalogues.live();
        let locations = Locations::new(&catalogues);
        let is_short = rows.len() < PAGE_SIZE as usize;
        let next = next.map(|id| id.to_string());
        let price = rows.iter().map(paid).fold(Money::ZERO, Money::plus);
        let parts = rows.iter().map(|row| u64::from(row.parts)).sum();
        MessageList {
            is_for_all: matches!(reader, Reader::Operator(_)),
            older: next
                .as_deref()
                .map(|id| query.address_with("before", Some(id))),
            looked_to: next.filter(|_| is_short),
            is_filtered: filters.is_any,
            sums: Sums {
                messages: match rows.len() {
                    1 => "1 message".to_owned(),
                    many => format!("{} messages on this page", count(many as u64)),
                },
                parts: count(parts),
                price: Amount::new(price, &self.settings.currency),
            },
            file: {
                let path = match reader {
                    Reader::Operator(_) => found::ALL_FILE,
                    Reader::Member { .. } => found::FILE,
                };
                let found = query.clone().at(path).without("before").without(SORT);
                found.without(found::TOTALS).address()
            },
            totals: {
                let here = match reader {
                    Reader::Operator(_) => super::all::HERE,
                    Reader::Member { .. } => super::HERE,
                };
                let found = query.clone().at(here).without("before");
                found.address_with(found::TOTALS, Some("1"))
            },
            query: query.clone(),
            rows: rows
                .into_iter()
                .map(|row| self.row(row, accounts, &locations))
                .collect(),
        }
    }

    fn row(
        &self,
        message: MessageSummary,
        accounts: &Accounts,
        locations: &Locations<'_>,
    ) -> MessageRow {
        let account = accounts.get(&message.account);
        let sees_texts = account.is_some_and(|(_, sees_texts)| *sees_texts);
        let text = if sees_texts {
            shorten(&message.text, TEXT_CHARS)
        } else {
            HIDDEN.to_owned()
        };
        MessageRow {
            id: message.id.to_string(),
            account: account.map(|(name, _)| name.clone()).unwrap_or_default(),
            at: message.accepted_at.into(),
            to: number(message.to),
            location: locations.short(message.to.as_ref(), message.network),
            text,
            channel: message.channel,
            state: message.state.into(),
            error: error(message.state),
            parts: message.parts,
            is_refunded: message.refunded() != Money::ZERO,
            price: money(paid(&message), &self.settings.currency),
            is_test: message.test_mode.is_some(),
            from: message.from.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    fn message(id: u64, from: &str, parts: u8, charged: i64) -> MessageSummary {
        MessageSummary {
            id: MessageId::new(id).expect("in range"),
            account: AccountId::new(1).expect("in range"),
            channel: Channel::Sms,
            from: Some(from.to_owned()),
            to: None,
            text: String::new(),
            state: MessageState::Queued,
            parts,
            price: Money::from_micros(9),
            charged: Some(Money::from_micros(charged)),
            test_mode: None,
            network: None,
            accepted_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_page_is_sorted_by_a_column_in_either_order() {
        for (order, expected) in [
            (None, [3, 2, 1]),
            (Some("nonsense"), [3, 2, 1]),
            (Some("from"), [1, 3, 2]),
            (Some("-from"), [2, 3, 1]),
            (Some("parts"), [2, 1, 3]),
            (Some("price"), [3, 1, 2]),
        ] {
            let mut messages = [
                message(3, "b", 3, 0),
                message(2, "c", 1, 9),
                message(1, "a", 2, 5),
            ];
            sort(&mut messages, order);
            let ids = messages.map(|message| message.id.get());
            assert_eq!(ids, expected, "{order:?}");
        }
    }
}
