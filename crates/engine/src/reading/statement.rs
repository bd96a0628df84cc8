//! The monthly statement of an account. It adds up with the ledger.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use domain::ports::{ExportStore, LedgerTotals, Span, StoreError, TrafficCount, TrafficStore};
use domain::{AccountId, Channel, Country, Money, Network, Timestamp};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use numbering::reference::Reference;
use serde_json::{Value, json};

use crate::catalogue::Catalogues;
use crate::csv_cells::push_row;

/// A month, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month(Date);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a month is written like 2026-11")]
pub struct NotAMonth;

impl Month {
    /// The month of a time.
    pub fn of(time: Timestamp) -> Self {
        Self(time.to_zoned(TimeZone::UTC).date().first_of_month())
    }

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.last_of_month().tomorrow().unwrap_or(self.0))
    }

    #[must_use]
    pub fn previous(self) -> Self {
        let before = self.0.yesterday().unwrap_or(self.0);
        Self(before.first_of_month())
    }

    /// The first moment.
    pub fn start(self) -> Timestamp {
        let start = self.0.to_zoned(TimeZone::UTC);
        start.map_or(Timestamp::UNIX_EPOCH, |start| start.timestamp())
    }

    /// The first moment of the next month.
    pub fn end(self) -> Timestamp {
        self.next().start()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.0.year(), self.0.month())
    }
}

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Self, NotAMonth> {
        let (year, month) = text.split_once('-').ok_or(NotAMonth)?;
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if year.len() != 4 || month.len() != 2 || !plain(year) || !plain(month) {
            return Err(NotAMonth);
        }
        let year: i16 = year.parse().map_err(|_| NotAMonth)?;
        let month: i8 = month.parse().map_err(|_| NotAMonth)?;
        // Times before 1970 cannot be stored, and 9999 has no next month.
        if !(1970..9999).contains(&year) {
            return Err(NotAMonth);
        }
        Date::new(year, month, 1).map(Self).map_err(|_| NotAMonth)
    }
}

/// Messages of one channel and network that ended in the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementLine {
    pub channel: Channel,
    pub country: Option<Country>,
    pub network: Option<Network>,
    pub messages: u64,
    pub parts: u64,
    /// What they cost, after refunds.
    pub amount: Money,
}

/// The statement of an account for a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub account: String,
    pub month: Month,
    pub currency: String,
    /// Whether the month is over.
    pub is_complete: bool,
    pub ledger: LedgerTotals,
    /// By channel, country and network.
    pub lines: Vec<StatementLine>,
}

impl Statement {
    /// The cost of the messages that ended in the month.
    pub fn ended(&self) -> Money {
        let amounts = self.lines.iter().map(|line| line.amount);
        amounts.fold(Money::ZERO, Money::plus)
    }

    /// What was charged for messages that had not ended by the end of the month, less what was charged earlier for
    /// messages that ended in it. With it, the lines add up to charges less refunds.
    pub fn in_progress(&self) -> Money {
        let paid = self.ledger.charges.plus(self.ledger.refunds);
        Money::ZERO.minus(paid).minus(self.ended())
    }

    /// CSV: the rows of the section `balance` lead from the opening to the closing balance; those of the section
    /// `messages` add up to charges and refunds.
    pub fn to_csv(&self) -> String {
        let mut csv = String::new();
        let header = [
            "section", "item", "channel", "country", "mcc", "mnc", "messages", "parts", "amount",
            "currency",
        ];
        push_row(&mut csv, &header);
        let negative = |amount: Money| Money::ZERO.minus(amount).to_string();
        for (item, messages, amount) in self.balance_rows() {
            let messages = messages.map(|messages| messages.to_string());
            let (messages, amount) = (messages.unwrap_or_default(), amount.to_string());
            let row = ["balance", item, "", "", "", "", &messages, "", &amount];
            push_row(&mut csv, &with_currency(&row, &self.currency));
        }
        for line in &self.lines {
            let (mcc, mnc) = network_codes(line.network);
            let (messages, parts) = (line.messages.to_string(), line.parts.to_string());
            let amount = negative(line.amount);
            let row = [
                "messages",
                "ended",
                line.channel.name(),
                line.country.as_ref().map_or("", Country::as_str),
                &mcc,
                &mnc,
                &messages,
                &parts,
                &amount,
            ];
            push_row(&mut csv, &with_currency(&row, &self.currency));
        }
        let amount = negative(self.in_progress());
        let row = ["messages", "in_progress", "", "", "", "", "", "", &amount];
        push_row(&mut csv, &with_currency(&row, &self.currency));
        csv
    }

    pub fn to_json(&self) -> Value {
        let ledger = &self.ledger;
        let line = |line: &StatementLine| {
            json!({
                "channel": line.channel.name(),
                "country": line.country.as_ref().map(Country::as_str),
                "mcc": line.network.map(|network| format!("{:03}", network.mcc())),
                "mnc": line.network.map(Network::mnc),
                "messages": line.messages,
                "parts": line.parts,
                "amount": line.amount.to_string(),
            })
        };
        json!({
            "account": self.account,
            "month": self.month.to_string(),
            "complete": self.is_complete,
            "currency": self.currency,
            "openingBalance": ledger.opening.to_string(),
            "credits": ledger.credits.to_string(),
            "corrections": ledger.corrections.to_string(),
            "charges": ledger.charges.to_string(),
            "chargedMessages": ledger.charged_messages,
            "refunds": ledger.refunds.to_string(),
            "refundedMessages": ledger.refunded_messages,
            "inbound": ledger.inbound.to_string(),
            "inboundMessages": ledger.inbound_messages,
            "verifications": ledger.verifications.to_string(),
            "approvedVerifications": ledger.approved_verifications,
            "closingBalance": ledger.closing().to_string(),
            "ended": self.lines.iter().map(line).collect::<Vec<_>>(),
            "inProgress": self.in_progress().to_string(),
        })
    }

    /// From the opening to the closing balance: name, number of messages, amount.
    pub fn balance_rows(&self) -> [(&'static str, Option<u64>, Money); 8] {
        let ledger = &self.ledger;
        [
            ("opening_balance", None, ledger.opening),
            ("credits", None, ledger.credits),
            ("corrections", None, ledger.corrections),
            ("charges", Some(ledger.charged_messages), ledger.charges),
            ("refunds", Some(ledger.refunded_messages), ledger.refunds),
            ("inbound", Some(ledger.inbound_messages), ledger.inbound),
            (
                "verifications",
                Some(ledger.approved_verifications),
                ledger.verifications,
            ),
            ("closing_balance", None, ledger.closing()),
        ]
    }
}

fn with_currency<'a>(row: &[&'a str; 9], currency: &'a str) -> Vec<&'a str> {
    row.iter().copied().chain([currency]).collect()
}

fn network_codes(network: Option<Network>) -> (String, String) {
    network.map_or_else(Default::default, |network| {
        (format!("{:03}", network.mcc()), network.mnc())
    })
}

/// Makes statements.
pub struct Statements {
    ledger: Arc<dyn ExportStore>,
    traffic: Arc<dyn TrafficStore>,
    catalogues: Arc<Catalogues>,
}

impl Statements {
    pub fn new(
        ledger: Arc<dyn ExportStore>,
        traffic: Arc<dyn TrafficStore>,
        catalogues: Arc<Catalogues>,
    ) -> Self {
        Self {
            ledger,
            traffic,
            catalogues,
        }
    }

    /// The statement of an account. A running month counts up to now.
    pub async fn statement(
        &self,
        (account, name): (AccountId, &str),
        month: Month,
        currency: &str,
        now: Timestamp,
    ) -> Result<Statement, StoreError> {
        let (start, end) = (month.start(), month.end());
        let ledger = self.ledger.ledger_totals(account, start, end).await?;
        let traffic = self
            .traffic
            .list_traffic(Some(account), Span::Day, start, end);
        let counts = traffic.await?;
        Ok(Statement {
            account: name.to_owned(),
            month,
            currency: currency.to_owned(),
            is_complete: end <= now,
            ledger,
            lines: lines(&counts, &self.catalogues.live().reference),
        })
    }
}

/// Adds up the days. Cancelled messages cost nothing and are left out.
fn lines(counts: &[TrafficCount], reference: &Reference) -> Vec<StatementLine> {
    let mut lines: BTreeMap<(&str, &str, Option<Network>), StatementLine> = BTreeMap::new();
    let countries: Vec<Option<Country>> = counts
        .iter()
        .map(|count| match count.network {
            Some(network) => reference.find_network(network).next()?.country,
            None => count.country,
        })
        .collect();
    for (count, country) in counts.iter().zip(&countries) {
        if count.outcome.is_none() {
            continue;
        }
        let code = country.as_ref().map_or("", Country::as_str);
        let key = (count.channel.name(), code, count.network);
        let line = lines.entry(key).or_insert(StatementLine {
            channel: count.channel,
            country: *country,
            network: count.network,
            messages: 0,
            parts: 0,
            amount: Money::ZERO,
        });
        line.messages += count.messages;
        line.parts += count.parts;
        line.amount = line.amount.plus(count.cost);
    }
    lines.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_read_and_follow_each_other() {
        for (text, next, start) in [
            ("2026-11", "2026-12", "2026-11-01T00:00:00Z"),
            ("2026-12", "2027-01", "2026-12-01T00:00:00Z"),
            ("2028-02", "2028-03", "2028-02-01T00:00:00Z"),
        ] {
            let month: Month = text.parse().expect(text);
            assert_eq!(month.to_string(), text);
            assert_eq!(month.next().to_string(), next);
            assert_eq!(month.next().previous(), month);
            assert_eq!(month.start().to_string(), start);
            assert_eq!(month.end(), month.next().start());
        }
        for text in [
            "2026",
            "2026-13",
            "2026-1",
            "26-11",
            "2026-11-01",
            "+026-11",
            "9999-12",
            "",
        ] {
            assert_eq!(text.parse::<Month>(), Err(NotAMonth), "{text}");
        }
    }

    #[test]
    fn the_lines_and_what_is_in_progress_add_up_to_the_ledger() {
        let money = Money::from_micros;
        let statement = Statement {
            account: "=acme".to_owned(),
            month: "2026-11".parse().expect("a month"),
            currency: "EUR".to_owned(),
            is_complete: true,
            ledger: LedgerTotals {
                opening: money(1_000_000),
                credits: money(5_000_000),
                corrections: money(-250_000),
                charges: money(-900_000),
                charged_messages: 9,
                refunds: money(100_000),
                refunded_messages: 1,
                inbound: money(-50_000),
                inbound_messages: 5,
                verifications: money(-40_000),
                approved_verifications: 2,
            },
            lines: vec![StatementLine {
                channel: Channel::Sms,
                country: Country::parse("LV").ok(),
                network: Network::new("247", "01"),
                messages: 8,
                parts: 9,
                amount: money(700_000),
            }],
        };
        assert_eq!(statement.ledger.closing(), money(4_860_000));
        assert_eq!(statement.in_progress(), money(100_000));
        let csv = "section,item,channel,country,mcc,mnc,messages,parts,amount,currency\r\n\
            balance,opening_balance,,,,,,,1.00,EUR\r\n\
            balance,credits,,,,,,,5.00,EUR\r\n\
            balance,corrections,,,,,,,-0.25,EUR\r\n\
            balance,charges,,,,,9,,-0.90,EUR\r\n\
            balance,refunds,,,,,1,,0.10,EUR\r\n\
            balance,inbound,,,,,5,,-0.05,EUR\r\n\
            balance,verifications,,,,,2,,-0.04,EUR\r\n\
            balance,closing_balance,,,,,,,4.86,EUR\r\n\
            messages,ended,sms,LV,247,01,8,9,-0.70,EUR\r\n\
            messages,in_progress,,,,,,,-0.10,EUR\r\n";
        assert_eq!(statement.to_csv(), csv);
    }
}
