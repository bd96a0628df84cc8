//! The margin of messages: what accounts paid for them, and what carriers charge.

use std::collections::BTreeMap;
use std::time::Instant;

use domain::message::MessageState;
use domain::ports::StoreError;
use domain::{Country, Money, Timestamp};

use super::export::{MessageExport, country};
use crate::csv_cells::push_row;

/// Messages of one carrier, country and account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MarginSums {
    pub messages: u64,
    pub parts: u64,
    /// What the account paid, after refunds.
    pub price: Money,
    /// What the carrier charges, for the messages whose cost is known.
    pub cost: Money,
    /// How many messages have an unknown cost although a carrier took them.
    pub without_cost: u64,
}

impl MarginSums {
    pub fn margin(&self) -> Money {
        self.price.minus(self.cost)
    }

    fn plus(&mut self, other: &Self) {
        self.messages += other.messages;
        self.parts += other.parts;
        self.price = self.price.plus(other.price);
        self.cost = self.cost.plus(other.cost);
        self.without_cost += other.without_cost;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarginKey {
    /// `None` if no carrier took the messages.
    pub carrier: Option<String>,
    pub country: Option<Country>,
    pub account: String,
}

/// The margin report of a period.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarginReport {
    pub rows: BTreeMap<MarginKey, MarginSums>,
    pub total: MarginSums,
    /// Whether everything was read before the deadline.
    pub is_complete: bool,
}

impl MarginReport {
    /// Adds up the ended messages of an export, until they are all read or the time is over. `watch` is called with the
    /// time up to which messages are added.
    pub async fn read(
        mut export: MessageExport,
        deadline: Option<Instant>,
        mut watch: impl FnMut(Timestamp),
    ) -> Result<Self, StoreError> {
        let mut report = Self::default();
        while let Some((messages, _)) = export.next_messages().await? {
            let reference = export.reference();
            for message in &messages {
                if !matches!(message.state, MessageState::Ended { .. }) {
                    continue;
                }
                let key = MarginKey {
                    carrier: message.carrier.clone(),
                    country: country(message.network, message.to.as_ref(), &reference),
                    account: export.account_name(message.account),
                };
                let sums = MarginSums {
                    messages: 1,
                    parts: message.parts.into(),
                    price: message.price,
                    cost: message.cost.unwrap_or_default(),
                    without_cost: (message.carrier.is_some() && message.cost.is_none()).into(),
                };
                report.rows.entry(key).or_default().plus(&sums);
                report.total.plus(&sums);
            }
            if let Some(last) = messages.last() {
                watch(last.accepted_at);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(report);
            }
        }
        report.is_complete = true;
        Ok(report)
    }

    /// CSV with a header line.
    pub fn to_csv(&self, currency: &str) -> String {
        let mut csv = String::new();
        let header = [
            "carrier",
            "country",
            "account",
            "messages",
            "parts",
            "price",
            "cost",
            "margin",
            "withoutCost",
            "currency",
        ];
        push_row(&mut csv, &header);
        for (key, sums) in &self.rows {
            push_row(
                &mut csv,
                &[
                    key.carrier.as_deref().unwrap_or_default(),
                    key.country.as_ref().map_or("", Country::as_str),
                    &key.account,
                    &sums.messages.to_string(),
                    &sums.parts.to_string(),
                    &sums.price.to_string(),
                    &sums.cost.to_string(),
                    &sums.margin().to_string(),
                    &sums.without_cost.to_string(),
                    currency,
                ],
            );
        }
        csv
    }
}
