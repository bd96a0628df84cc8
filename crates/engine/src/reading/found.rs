//! The messages that a search finds, as CSV and added up, without their texts.

use std::collections::BTreeMap;

use domain::message::MessageState;
use domain::ports::{Cursor, MessageFilter, MessageSummary, StateName, StoreError};
use domain::{AccountId, MessageId, Money, Network, Outcome};
use numbering::reference::Reference;

use super::export::{TIME, country};
use super::history::{History, MAX_LIST_SIZE};
use crate::csv_cells::push_row;

/// The columns of the file.
pub const COLUMNS: [&str; 17] = [
    "id", "account", "channel", "from", "to", "accepted", "ended", "state", "status", "error",
    "parts", "price", "currency", "mcc", "mnc", "country", "test",
];
/// Maximum number of messages that are added up.
pub const MAX_TOTAL: u64 = 10_000;

/// A search in progress. It reads one page at a time, the newest messages first.
pub struct Found {
    filter: MessageFilter,
    before: Option<MessageId>,
    is_done: bool,
}

impl Found {
    pub fn new(filter: MessageFilter) -> Self {
        Self {
            filter,
            before: None,
            is_done: false,
        }
    }

    /// The next messages, possibly none; `None` at the end.
    pub async fn next(
        &mut self,
        history: &History,
    ) -> Result<Option<Vec<MessageSummary>>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let cursor = Cursor {
            before: self.before,
            limit: MAX_LIST_SIZE,
        };
        let page = history.list_messages(&self.filter, cursor).await?;
        self.before = page.next;
        self.is_done = page.next.is_none();
        Ok(Some(page.rows))
    }
}

/// What a message costs: after refunds if it has ended.
pub fn paid(message: &MessageSummary) -> Money {
    message.charged.unwrap_or(message.price)
}

/// The first line of the file.
pub fn header() -> String {
    let mut header = String::new();
    push_row(&mut header, &COLUMNS);
    header
}

/// Messages as lines of the file. `names` are the names of their accounts.
pub fn lines(
    messages: &[MessageSummary],
    names: &BTreeMap<AccountId, String>,
    currency: &str,
    reference: &Reference,
) -> String {
    let mut csv = String::with_capacity(messages.len() * 160);
    for message in messages {
        let cells = cells(message, names, currency, reference);
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        push_row(&mut csv, &cells);
    }
    csv
}

fn cells(
    message: &MessageSummary,
    names: &BTreeMap<AccountId, String>,
    currency: &str,
    reference: &Reference,
) -> [String; COLUMNS.len()] {
    let (ended, outcome) = match message.state {
        MessageState::Ended { outcome, at } => (Some(at), Some(outcome)),
        MessageState::Cancelled { at } => (Some(at), None),
        _ => (None, None),
    };
    let network = message.network;
    let text = |text: Option<String>| text.unwrap_or_default();
    [
        message.id.to_string(),
        names.get(&message.account).cloned().unwrap_or_default(),
        message.channel.name().to_owned(),
        text(message.from.clone()),
        text(message.to.map(|to| to.to_string())),
        message.accepted_at.strftime(TIME).to_string(),
        text(ended.map(|at| at.strftime(TIME).to_string())),
        message.state.name().to_owned(),
        text(
            outcome
                .map(Outcome::status)
                .map(|status| status.to_string()),
        ),
        text(outcome.map(|outcome| outcome.code().number().to_string())),
        message.parts.to_string(),
        paid(message).to_string(),
        currency.to_owned(),
        text(network.map(|network| format!("{:03}", network.mcc()))),
        text(network.map(Network::mnc)),
        text(
            country(network, message.to.as_ref(), reference)
                .map(|country| country.as_str().to_owned()),
        ),
        if message.test_mode.is_some() {
            "yes"
        } else {
            ""
        }
        .to_owned(),
    ]
}

/// Messages of a search, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    pub messages: u64,
    pub parts: u64,
    pub price: Money,
}

impl Sum {
    fn add(&mut self, message: &MessageSummary) {
        self.messages += 1;
        self.parts += u64::from(message.parts);
        self.price = self.price.plus(paid(message));
    }
}

/// The sums of a search, by state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundTotals {
    pub all: Sum,
    /// Only states that messages have.
    pub states: Vec<(StateName, Sum)>,
    /// Whether there are older messages that were not added.
    pub is_cut: bool,
}

impl FoundTotals {
    pub fn add(&mut self, message: &MessageSummary) {
        self.all.add(message);
        let name = message.state.name();
        let Some(state) = StateName::ALL
            .into_iter()
            .find(|state| state.name() == name)
        else {
            return;
        };
        let place = self.states.iter().position(|(known, _)| *known == state);
        let place = place.unwrap_or_else(|| {
            self.states.push((state, Sum::default()));
            self.states.len() - 1
        });
        self.states[place].1.add(message);
    }

    /// Adds up the newest [`MAX_TOTAL`] messages that match.
    pub async fn read(history: &History, filter: MessageFilter) -> Result<Self, StoreError> {
        let mut found = Found::new(filter);
        let mut totals = Self::default();
        while let Some(messages) = found.next(history).await? {
            for message in &messages {
                totals.add(message);
            }
            if totals.all.messages >= MAX_TOTAL {
                totals.is_cut = !found.is_done;
                break;
            }
        }
        totals
            .states
            .sort_by_key(|(state, _)| StateName::ALL.iter().position(|other| other == state));
        Ok(totals)
    }
}

#[cfg(test)]
mod tests {
    use domain::{Channel, Timestamp};

    use super::*;

    fn message(state: MessageState, parts: u8, charged: Option<i64>) -> MessageSummary {
        MessageSummary {
            id: MessageId::new(7).expect("in range"),
            account: AccountId::new(1).expect("in range"),
            channel: Channel::Sms,
            from: Some("=Acme".to_owned()),
            to: None,
            text: String::new(),
            state,
            parts,
            price: Money::from_micros(30_000),
            charged: charged.map(Money::from_micros),
            test_mode: None,
            network: None,
            accepted_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn delivered() -> MessageState {
        MessageState::Ended {
            outcome: Outcome::Delivered,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn messages_are_added_up_by_state() {
        let mut totals = FoundTotals::default();
        for message in [
            message(MessageState::Queued, 1, None),
            message(delivered(), 2, Some(20_000)),
            message(delivered(), 1, Some(10_000)),
        ] {
            totals.add(&message);
        }
        let sum = |messages, parts, micros| Sum {
            messages,
            parts,
            price: Money::from_micros(micros),
        };
        assert_eq!(totals.all, sum(3, 4, 60_000));
        assert_eq!(
            totals.states,
            [
                (StateName::Queued, sum(1, 1, 30_000)),
                (StateName::Delivered, sum(2, 3, 30_000))
            ]
        );
    }

    #[test]
    fn a_line_has_a_cell_for_each_column() {
        let names = BTreeMap::from([(AccountId::new(1).expect("in range"), "acme".to_owned())]);
        let reference = Reference::embedded();
        let line = lines(&[message(delivered(), 2, None)], &names, "EUR", &reference);
        let time = "1970-01-01T00:00:00.000Z";
        assert_eq!(
            line,
            format!("7,acme,sms,'=Acme,,{time},{time},delivered,1,0,2,0.03,EUR,,,,\r\n")
        );
        assert_eq!(header().split(',').count(), COLUMNS.len());
    }
}
