//! Exporting messages as CSV or JSON lines, without their texts.

use std::collections::HashMap;
use std::sync::Arc;

use domain::message::MessageState;
use domain::ports::{
    AccessStore, ExportFilter, ExportRange, ExportStore, ExportedMessage, StoreError,
};
use domain::{AccountId, Country, MessageId, Msisdn, Network, Outcome, Timestamp};
use numbering::reference::Reference;
use serde_json::{Value, json};

use crate::catalogue::Catalogues;
use crate::csv_cells::push_row;

/// The columns, which are also the keys of JSON lines.
pub const COLUMNS: [&str; 19] = [
    "id", "account", "channel", "from", "to", "accepted", "sent", "ended", "state", "status",
    "error", "parts", "price", "cost", "currency", "carrier", "mcc", "mnc", "country",
];
/// Times are in UTC, with milliseconds.
pub(super) const TIME: &str = "%Y-%m-%dT%H:%M:%S%.3fZ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Csv,
    /// One JSON object on each line.
    JsonLines,
}

/// Begins exports.
#[derive(Clone)]
pub struct Exports {
    store: Arc<dyn ExportStore>,
    names: Arc<dyn AccessStore>,
    catalogues: Arc<Catalogues>,
}

impl Exports {
    pub fn new(
        store: Arc<dyn ExportStore>,
        names: Arc<dyn AccessStore>,
        catalogues: Arc<Catalogues>,
    ) -> Self {
        Self {
            store,
            names,
            catalogues,
        }
    }

    /// An export that begins after a message, or with the first.
    pub fn begin(
        &self,
        filter: ExportFilter,
        format: ExportFormat,
        currency: &str,
        after: Option<MessageId>,
    ) -> MessageExport {
        MessageExport {
            source: self.clone(),
            currency: currency.to_owned(),
            format,
            filter,
            with_costs: true,
            accounts: HashMap::new(),
            after,
            range: None,
            is_done: false,
        }
    }
}

/// An export in progress. It reads one page at a time, and holds nothing open in between.
pub struct MessageExport {
    source: Exports,
    currency: String,
    format: ExportFormat,
    filter: ExportFilter,
    with_costs: bool,
    accounts: HashMap<AccountId, String>,
    after: Option<MessageId>,
    /// Found with the first page.
    range: Option<ExportRange>,
    is_done: bool,
}

/// A piece of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportChunk {
    /// Whole lines; may be empty.
    pub text: String,
    pub messages: u64,
    /// When the last message of it was accepted.
    pub until: Option<Timestamp>,
    /// An export that continues after this ID has the rest.
    pub after: MessageId,
}

impl MessageExport {
    /// Leaves costs empty, which only operators may see.
    #[must_use]
    pub fn without_costs(mut self) -> Self {
        self.with_costs = false;
        self
    }

    /// The first line of a CSV file; empty for JSON lines.
    pub fn header(&self) -> String {
        let mut header = String::new();
        if self.format == ExportFormat::Csv {
            push_row(&mut header, &COLUMNS);
        }
        header
    }

    /// The next lines; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<ExportChunk>, StoreError> {
        let Some((messages, last)) = self.next_messages().await? else {
            return Ok(None);
        };
        let reference = self.reference();
        let mut text = String::with_capacity(messages.len() * 180);
        for message in &messages {
            let row = self.row(message, &reference);
            match self.format {
                ExportFormat::Csv => push_csv(&mut text, &row),
                ExportFormat::JsonLines => push_json(&mut text, &row),
            }
        }
        Ok(Some(ExportChunk {
            text,
            messages: messages.len() as u64,
            until: messages.last().map(|message| message.accepted_at),
            after: last,
        }))
    }

    /// The next messages, and the ID after which the export continues.
    pub(super) async fn next_messages(
        &mut self,
    ) -> Result<Option<(Vec<ExportedMessage>, MessageId)>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let source = &self.source.store;
        let mut range = match self.range {
            Some(range) => range,
            None => source.find_export_range(&self.filter).await?,
        };
        range.after = range.after.max(self.after);
        self.range = Some(range);
        let page = source.export_messages(&self.filter, range).await?;
        self.is_done = page.next.is_none();
        let last = page.messages.last().map(|message| message.id);
        let Some(after) = page.next.or(last) else {
            return Ok(None);
        };
        self.after = Some(after);
        self.learn_names(&page.messages).await?;
        Ok(Some((page.messages, after)))
    }

    async fn learn_names(&mut self, messages: &[ExportedMessage]) -> Result<(), StoreError> {
        let ids = messages.iter().map(|message| message.account);
        let mut unknown: Vec<AccountId> =
            ids.filter(|id| !self.accounts.contains_key(id)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            let names = self.source.names.list_account_names(&unknown).await?;
            self.accounts.extend(names);
        }
        Ok(())
    }

    pub(super) fn reference(&self) -> Arc<Reference> {
        self.source.catalogues.live().reference.clone()
    }

    /// The name of an account of a message that was read.
    pub(super) fn account_name(&self, id: AccountId) -> String {
        let name = self.accounts.get(&id).cloned();
        name.unwrap_or_else(|| id.to_string())
    }

    /// The values of the columns; `null` for what is unknown.
    fn row(&self, message: &ExportedMessage, reference: &Reference) -> [Value; COLUMNS.len()] {
        let time = |at: Timestamp| at.strftime(TIME).to_string();
        let (ended, outcome) = match message.state {
            MessageState::Ended { outcome, at } => (Some(at), Some(outcome)),
            MessageState::Cancelled { at } => (Some(at), None),
            _ => (None, None),
        };
        let cost = message.cost.filter(|_| self.with_costs);
        let network = message.network;
        [
            json!(message.id.to_string()),
            json!(self.account_name(message.account)),
            json!(message.channel.name()),
            json!(message.from),
            json!(message.to.map(|to| to.to_string())),
            json!(time(message.accepted_at)),
            json!(message.sent_at.map(time)),
            json!(ended.map(time)),
            json!(message.state.name()),
            json!(outcome.map(Outcome::status)),
            json!(outcome.map(|outcome| outcome.code().number())),
            json!(message.parts),
            json!(message.price.to_string()),
            json!(cost.map(|cost| cost.to_string())),
            json!(self.currency),
            json!(message.carrier),
            json!(network.map(|network| format!("{:03}", network.mcc()))),
            json!(network.map(Network::mnc)),
            json!(
                country(network, message.to.as_ref(), reference)
                    .map(|country| country.as_str().to_owned())
            ),
        ]
    }
}

/// The country of a message: that of its network, else that of its number.
pub(super) fn country(
    network: Option<Network>,
    to: Option<&Msisdn>,
    reference: &Reference,
) -> Option<Country> {
    let country = network.and_then(|network| {
        let entry = reference.find_network(network).next();
        entry.and_then(|entry| entry.country)
    });
    country.or_else(|| reference.locate(to?).country)
}

fn push_csv(text: &mut String, row: &[Value]) {
    let cells: Vec<String> = row
        .iter()
        .map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect();
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    push_row(text, &cells);
}

/// Keys in the order of the columns.
fn push_json(text: &mut String, row: &[Value]) {
    for (index, (column, value)) in COLUMNS.iter().zip(row).enumerate() {
        text.push(if index == 0 { '{' } else { ',' });
        text.push('"');
        text.push_str(column);
        text.push_str("\":");
        text.push_str(&value.to_string());
    }
    text.push_str("}\n");
}
