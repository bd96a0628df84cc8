//! The spending rules of an account, and the ledger of its balance.
//!
//! A balance is always the sum of the account's ledger entries: both change in the same transaction. All messages of
//! one batch are charged by one entry; each message stores its own price.

mod priced;
mod rule_change;
mod text_roles;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::code_cap::ACCOUNT_DAY;
use crate::ids::GrantId;
use crate::money::Money;
use crate::number::country::{Country, UnknownCountry};
use crate::number::msisdn::Msisdn;

pub use priced::{Priced, UnknownPriced};
pub use rule_change::RuleChange;
pub use text_roles::TextRoles;

/// The length of the window that [`SpendingRules::per_recipient_hour`] counts over, in microseconds.
pub const RECIPIENT_WINDOW_US: i64 = 3600 * 1_000_000;

const SECONDS_IN_A_DAY: i64 = 24 * 3600;

/// The UTC day of a time, counted from 1970. A daily cap starts again with each day.
pub fn day_of(time: Timestamp) -> i32 {
    i32::try_from(time.as_second().div_euclid(SECONDS_IN_A_DAY))
        .expect("times end in the year 9999")
}

/// What an account may spend, and on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendingRules {
    /// How far the balance may go below zero.
    pub credit_limit: Money,
    /// The most that may be charged on one UTC day; refunds of that day do not raise it.
    pub daily_cap: Option<Money>,
    pub per_recipient_hour: Option<u32>,
    pub countries: Countries,
    /// Whether the account may use only approved sender IDs of its own.
    pub approved_senders_only: bool,
    /// Per node; 0 for no limit.
    pub requests_per_second: u32,
    /// The number of confirmation codes.
    pub codes_per_day: u32,
    /// Whether only admins of the account may allow clients to act for it.
    pub admins_consent_only: bool,
    /// Who sees texts in the dashboard.
    pub texts_for: TextRoles,
    /// Below this balance the account and the operators are notified.
    pub low_balance: Option<Money>,
    /// Whether prices and routes go by the network that a number was ported to, if that is known.
    pub ported_numbers: bool,
    /// What an approved verification costs, besides its message.
    pub verify_price: Money,
}

impl Default for SpendingRules {
    fn default() -> Self {
        Self {
            credit_limit: Money::ZERO,
            daily_cap: None,
            per_recipient_hour: None,
            countries: Countries::default(),
            approved_senders_only: false,
            requests_per_second: 0,
            codes_per_day: ACCOUNT_DAY,
            admins_consent_only: false,
            texts_for: TextRoles::default(),
            low_balance: None,
            ported_numbers: false,
            verify_price: Money::ZERO,
        }
    }
}

impl SpendingRules {
    /// Each rule with its key and its value, as `account set` takes them.
    pub fn in_words(&self) -> [(&'static str, String); 12] {
        let off = || "off".to_owned();
        let codes = self.countries.to_string();
        let countries = if codes.is_empty() {
            "all".to_owned()
        } else {
            codes.replace(' ', ",")
        };
        let cap = self.daily_cap.map_or_else(off, |cap| cap.to_string());
        let hour = self
            .per_recipient_hour
            .map_or_else(off, |limit| limit.to_string());
        [
            ("credit_limit", self.credit_limit.to_string()),
            ("countries", countries),
            ("daily_cap", cap),
            ("per_recipient_hour", hour),
            (
                "approved_senders_only",
                self.approved_senders_only.to_string(),
            ),
            ("requests_per_second", self.requests_per_second.to_string()),
            ("codes_per_day", self.codes_per_day.to_string()),
            ("admins_consent_only", self.admins_consent_only.to_string()),
            ("texts_for", self.texts_for.to_string()),
            (
                "low_balance",
                self.low_balance.map_or_else(off, |low| low.to_string()),
            ),
            ("ported_numbers", self.ported_numbers.to_string()),
            ("verify_price", self.verify_price.to_string()),
        ]
    }

    /// The rules that differ from `before`, as `account set` takes them, on one line.
    pub fn changes_since(&self, before: &Self) -> String {
        let changed = self.in_words().into_iter().zip(before.in_words());
        let words: Vec<String> = changed
            .filter(|(now, before)| now != before)
            .map(|((key, value), _)| format!("{key}={value}"))
            .collect();
        words.join(" ")
    }
}

/// The countries that an account may send to; an empty list allows every destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Countries(Vec<Country>);

impl Countries {
    /// Whether a destination is allowed. One without a country is allowed only by an empty list.
    pub fn allows(&self, country: Option<Country>) -> bool {
        self.0.is_empty() || country.is_some_and(|country| self.0.binary_search(&country).is_ok())
    }

    /// The countries, sorted by code.
    pub fn as_slice(&self) -> &[Country] {
        &self.0
    }
}

impl FromIterator<Country> for Countries {
    fn from_iter<I: IntoIterator<Item = Country>>(countries: I) -> Self {
        let mut countries: Vec<Country> = countries.into_iter().collect();
        countries.sort_unstable();
        countries.dedup();
        Self(countries)
    }
}

/// The stored form: codes, separated by spaces.
impl fmt::Display for Countries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codes: Vec<&str> = self.0.iter().map(Country::as_str).collect();
        f.write_str(&codes.join(" "))
    }
}

/// Parses codes, separated by commas or spaces.
impl FromStr for Countries {
    type Err = UnknownCountry;

    fn from_str(text: &str) -> Result<Self, UnknownCountry> {
        let codes = text.split([',', ' ']).filter(|code| !code.is_empty());
        codes.map(Country::parse).collect()
    }
}

/// Why a valid request cannot be paid. Nothing of it is stored or charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPaid {
    /// The balance, with the credit limit, does not cover it.
    Balance { cost: Money, available: Money },
    /// The request would exceed the daily cap.
    DailyCap { cost: Money, left: Money },
    /// The request would exceed the daily cap of the client that made it.
    GrantCap { cost: Money, left: Money },
    /// The request alone costs more than the daily cap, so it is refused on every day.
    AboveDailyCap { cost: Money, cap: Money },
    /// The request alone costs more than the daily cap of the client that made it.
    AboveGrantCap { cost: Money, cap: Money },
    /// One recipient would get more messages within an hour than the account may send.
    RecipientHour { to: Msisdn, limit: u32 },
}

impl NotPaid {
    /// Whether the same request is refused on every day.
    pub const fn is_permanent(self) -> bool {
        matches!(
            self,
            Self::AboveDailyCap { .. } | Self::AboveGrantCap { .. }
        )
    }
}

/// What a client may spend for its account on one UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantCap {
    pub grant: GrantId,
    pub daily: Money,
}

impl GrantCap {
    /// Checks that the client could pay for a request on a day on which it has spent nothing.
    pub fn check_alone(self, cost: Money) -> Result<(), NotPaid> {
        let cap = self.daily;
        if cost > cap {
            return Err(NotPaid::AboveGrantCap { cost, cap });
        }
        Ok(())
    }

    /// How much the client may still spend today if it has spent this much. Never below zero.
    pub fn left(self, spent: Money) -> Money {
        self.daily.minus(spent).max(Money::ZERO)
    }
}

/// The balance and the limits of an account, as one transaction sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountFunds {
    pub balance: Money,
    /// See [`SpendingRules::credit_limit`].
    pub credit_limit: Money,
    /// See [`SpendingRules::daily_cap`].
    pub daily_cap: Option<Money>,
    /// See [`SpendingRules::per_recipient_hour`].
    pub per_recipient_hour: Option<u32>,
    /// The day on which something was last charged, by [`day_of`].
    pub spent_day: i32,
    /// The amount charged on that day.
    pub spent: Money,
}

impl AccountFunds {
    /// What the daily cap leaves for a day, never below zero; `None` without a cap.
    pub fn left_on(&self, day: i32) -> Option<Money> {
        let left = self.daily_cap?.minus(self.spent_on(day));
        Some(left.max(Money::ZERO))
    }

    fn spent_on(&self, day: i32) -> Money {
        if day > self.spent_day {
            Money::ZERO
        } else {
            self.spent
        }
    }

    /// Charges the balance, or returns the reason why not. Free messages are always accepted. A clock that is behind
    /// does not start an earlier day again.
    pub fn charge(&mut self, cost: Money, day: i32) -> Result<(), NotPaid> {
        if cost == Money::ZERO {
            return Ok(());
        }
        if let Some(cap) = self.daily_cap.filter(|cap| cost > *cap) {
            return Err(NotPaid::AboveDailyCap { cost, cap });
        }
        let spent = self.spent_on(day);
        if let Some(left) = self.left_on(day).filter(|left| cost > *left) {
            return Err(NotPaid::DailyCap { cost, left });
        }
        let available = self.balance.plus(self.credit_limit);
        if cost > available {
            let available = available.max(Money::ZERO);
            return Err(NotPaid::Balance { cost, available });
        }
        self.balance = self.balance.minus(cost);
        self.spent = spent.plus(cost);
        self.spent_day = self.spent_day.max(day);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// An operator added money or took some off.
    Credit,
    /// Messages were accepted.
    Charge,
    /// Messages ended in a state that is not charged.
    Refund,
    /// Messages from handsets were received.
    Inbound,
    /// Verifications were approved.
    Verification,
}

impl EntryKind {
    const ALL: [Self; 5] = [
        Self::Credit,
        Self::Charge,
        Self::Refund,
        Self::Inbound,
        Self::Verification,
    ];

    pub const fn number(self) -> i16 {
        match self {
            Self::Credit => 1,
            Self::Charge => 2,
            Self::Refund => 3,
            Self::Inbound => 4,
            Self::Verification => 5,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Inbound => "inbound",
            Self::Verification => "verification",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Increases with each entry of the account.
    pub id: u64,
    pub at: Timestamp,
    pub kind: EntryKind,
    /// Negative if money is taken off.
    pub amount: Money,
    /// The balance after this entry.
    pub balance: Money,
    /// The number of messages, or of verifications, it is for.
    pub messages: u32,
    pub note: Option<String>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TODAY: i32 = 20_000;

    fn money(text: &str) -> Money {
        text.parse().expect(text)
    }

    #[test]
    fn a_charge_needs_the_balance_and_keeps_to_the_cap() {
        let ok = Ok(());
        let poor = |cost, available| {
            let (cost, available) = (money(cost), money(available));
            Err(NotPaid::Balance { cost, available })
        };
        let capped = |cost, left| {
            let (cost, left) = (money(cost), money(left));
            Err(NotPaid::DailyCap { cost, left })
        };
        let above = |cost, cap| {
            let (cost, cap) = (money(cost), money(cap));
            Err(NotPaid::AboveDailyCap { cost, cap })
        };
        // balance, credit limit, cap, spent today, cost, expected result
        for (balance, credit, cap, spent, cost, expected) in [
            ("1", "0", None, "0", "1", ok),
            ("1", "0", None, "0", "1.000001", poor("1.000001", "1")),
            ("0", "0.5", None, "0", "0.5", ok),
            ("-0.5", "0.5", None, "0", "0.01", poor("0.01", "0")),
            ("-2", "0.5", None, "0", "0.01", poor("0.01", "0")),
            ("-2", "0.5", None, "0", "0", ok),
            ("9", "0", Some("2"), "0", "2", ok),
            ("9", "0", Some("2"), "1.5", "0.51", capped("0.51", "0.5")),
            ("9", "0", Some("2"), "3", "0.01", capped("0.01", "0")),
            ("9", "0", Some("2"), "1.5", "2.01", above("2.01", "2")),
            ("9", "0", Some("0"), "0", "0.01", above("0.01", "0")),
        ] {
            let mut funds = AccountFunds {
                balance: money(balance),
                credit_limit: money(credit),
                daily_cap: cap.map(money),
                spent_day: TODAY,
                spent: money(spent),
                ..AccountFunds::default()
            };
            let before = funds;
            let case = format!("{balance} {credit} {cap:?} {spent} {cost}");
            assert_eq!(funds.charge(money(cost), TODAY), expected, "{case}");
            if expected.is_err() {
                assert_eq!(funds, before, "{case}: nothing changed");
            } else {
                assert_eq!(funds.balance, before.balance.minus(money(cost)), "{case}");
            }
        }
    }

    #[test]
    fn a_new_day_resets_the_cap_and_a_late_clock_does_not() {
        let mut funds = AccountFunds {
            balance: money("10"),
            daily_cap: Some(money("1")),
            spent_day: TODAY,
            spent: money("1"),
            ..AccountFunds::default()
        };
        assert!(funds.charge(money("0.1"), TODAY).is_err());
        assert!(funds.charge(money("0.1"), TODAY - 1).is_err());
        assert_eq!(funds.charge(money("1"), TODAY + 1), Ok(()));
        assert!(funds.charge(money("0.1"), TODAY).is_err());
        assert_eq!(funds.spent_day, TODAY + 1);
    }

    #[test]
    fn countries_are_a_set_and_none_means_all() {
        let latvia = Country::parse("LV").ok();
        for (text, allowed, stored) in [
            ("", true, ""),
            ("lv", true, "LV"),
            ("LV,EE, lv", true, "EE LV"),
            ("EE", false, "EE"),
        ] {
            let countries: Countries = text.parse().expect(text);
            assert_eq!(countries.allows(latvia), allowed, "{text}");
            assert_eq!(countries.allows(None), text.is_empty(), "{text}");
            assert_eq!(countries.to_string(), stored);
        }
        assert!("LV,XX".parse::<Countries>().is_err());
    }

    proptest! {
        #[test]
        fn no_sequence_of_charges_exceeds_the_limits(
            balance in -1000_i64..1000, credit in 0_i64..500, cap in proptest::option::of(0_i64..800),
            costs in prop::collection::vec((0_i64..300, 0_i32..3), 0..40),
        ) {
            let mut funds = AccountFunds {
                balance: Money::from_micros(balance),
                credit_limit: Money::from_micros(credit),
                daily_cap: cap.map(Money::from_micros),
                ..AccountFunds::default()
            };
            let mut paid = 0;
            for (cost, day) in costs {
                if funds.charge(Money::from_micros(cost), day).is_ok() {
                    paid += cost;
                }
                prop_assert_eq!(funds.balance.micros(), balance - paid);
                prop_assert!(paid == 0 || funds.balance.micros() >= -credit);
                prop_assert!(cap.is_none_or(|cap| funds.spent.micros() <= cap));
            }
        }
    }
}
