//! A change of one spending rule, written as `KEY=VALUE`.

use std::str::FromStr;

use super::{Countries, SpendingRules, TextRoles};
use crate::money::{Money, NotMoney};
use crate::quoted::Quoted;
use crate::role::UnknownRole;

const CREDIT_LIMIT: &str = "credit_limit";
const COUNTRIES: &str = "countries";
const DAILY_CAP: &str = "daily_cap";
const PER_RECIPIENT_HOUR: &str = "per_recipient_hour";
const APPROVED_SENDERS_ONLY: &str = "approved_senders_only";
const REQUESTS_PER_SECOND: &str = "requests_per_second";
const CODES_PER_DAY: &str = "codes_per_day";
const ADMINS_CONSENT_ONLY: &str = "admins_consent_only";
const TEXTS_FOR: &str = "texts_for";
const LOW_BALANCE: &str = "low_balance";
const PORTED_NUMBERS: &str = "ported_numbers";
const VERIFY_PRICE: &str = "verify_price";

/// The value that switches a limit off.
const OFF: &str = "off";
/// The value that allows every destination.
const ALL: &str = "all";
/// The largest balance; a higher limit would have no effect.
const MAX_AMOUNT: Money = Money::from_micros(1_000_000_000 * 1_000_000);
/// More than one node can answer.
const MAX_REQUESTS_PER_SECOND: u32 = 1_000_000;
/// More than any account needs.
const MAX_CODES_PER_DAY: u32 = 10_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleChange {
    CreditLimit(Money),
    Countries(Countries),
    DailyCap(Option<Money>),
    PerRecipientHour(Option<u32>),
    ApprovedSendersOnly(bool),
    RequestsPerSecond(u32),
    CodesPerDay(u32),
    AdminsConsentOnly(bool),
    TextsFor(TextRoles),
    LowBalance(Option<Money>),
    PortedNumbers(bool),
    VerifyPrice(Money),
}

impl RuleChange {
    pub const fn key(&self) -> &'static str {
        match self {
            Self::CreditLimit(_) => CREDIT_LIMIT,
            Self::Countries(_) => COUNTRIES,
            Self::DailyCap(_) => DAILY_CAP,
            Self::PerRecipientHour(_) => PER_RECIPIENT_HOUR,
            Self::ApprovedSendersOnly(_) => APPROVED_SENDERS_ONLY,
            Self::RequestsPerSecond(_) => REQUESTS_PER_SECOND,
            Self::CodesPerDay(_) => CODES_PER_DAY,
            Self::AdminsConsentOnly(_) => ADMINS_CONSENT_ONLY,
            Self::TextsFor(_) => TEXTS_FOR,
            Self::LowBalance(_) => LOW_BALANCE,
            Self::PortedNumbers(_) => PORTED_NUMBERS,
            Self::VerifyPrice(_) => VERIFY_PRICE,
        }
    }

    pub fn apply(self, rules: &mut SpendingRules) {
        match self {
            Self::CreditLimit(limit) => rules.credit_limit = limit,
            Self::Countries(countries) => rules.countries = countries,
            Self::DailyCap(cap) => rules.daily_cap = cap,
            Self::PerRecipientHour(limit) => rules.per_recipient_hour = limit,
            Self::ApprovedSendersOnly(only) => rules.approved_senders_only = only,
            Self::RequestsPerSecond(rate) => rules.requests_per_second = rate,
            Self::CodesPerDay(codes) => rules.codes_per_day = codes,
            Self::AdminsConsentOnly(only) => rules.admins_consent_only = only,
            Self::TextsFor(shown) => rules.texts_for = shown,
            Self::LowBalance(balance) => rules.low_balance = balance,
            Self::PortedNumbers(are_used) => rules.ported_numbers = are_used,
            Self::VerifyPrice(price) => rules.verify_price = price,
        }
    }
}

impl FromStr for RuleChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let keys = || {
            format!(
                "{CREDIT_LIMIT}, {COUNTRIES}, {DAILY_CAP}, {PER_RECIPIENT_HOUR}, {APPROVED_SENDERS_ONLY}, \
                 {REQUESTS_PER_SECOND}, {CODES_PER_DAY}, {ADMINS_CONSENT_ONLY}, {TEXTS_FOR}, \
                 {LOW_BALANCE}, {PORTED_NUMBERS}, {VERIFY_PRICE}"
            )
        };
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("write KEY=VALUE; the keys are {}", keys()))?;
        match key {
            CREDIT_LIMIT => amount(value).map(Self::CreditLimit),
            COUNTRIES => countries(value).map(Self::Countries),
            DAILY_CAP => unless_off(value, amount)
                .map(Self::DailyCap)
                .map_err(|reason| format!("{reason}, or write {OFF}")),
            PER_RECIPIENT_HOUR => unless_off(value, count)
                .map(Self::PerRecipientHour)
                .map_err(|reason| format!("{reason}, or write {OFF}")),
            APPROVED_SENDERS_ONLY => yes_or_no(value).map(Self::ApprovedSendersOnly),
            REQUESTS_PER_SECOND => rate(value).map(Self::RequestsPerSecond),
            CODES_PER_DAY => codes(value).map(Self::CodesPerDay),
            ADMINS_CONSENT_ONLY => yes_or_no(value).map(Self::AdminsConsentOnly),
            TEXTS_FOR => roles(value).map(Self::TextsFor),
            LOW_BALANCE => unless_off(value, amount)
                .map(Self::LowBalance)
                .map_err(|reason| format!("{reason}, or write {OFF}")),
            PORTED_NUMBERS => yes_or_no(value).map(Self::PortedNumbers),
            VERIFY_PRICE => amount(value).map(Self::VerifyPrice),
            unknown => Err(format!(
                "there is no key {}; the keys are {}",
                Quoted(unknown),
                keys()
            )),
        }
    }
}

fn yes_or_no(value: &str) -> Result<bool, String> {
    let read = value.parse();
    read.map_err(|_| format!("{} is neither true nor false", Quoted(value)))
}

fn roles(value: &str) -> Result<TextRoles, String> {
    let read = value.parse();
    read.map_err(|error: UnknownRole| {
        format!("{error}, separated by commas, or write {ALL} or none")
    })
}

fn unless_off<T>(
    value: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if value == OFF {
        return Ok(None);
    }
    read(value).map(Some)
}

fn amount(value: &str) -> Result<Money, String> {
    let amount: Money = value.parse().map_err(|error: NotMoney| error.to_string())?;
    if (Money::ZERO..=MAX_AMOUNT).contains(&amount) {
        Ok(amount)
    } else {
        Err(format!(
            "{amount} is out of range; give an amount from 0.00 to {MAX_AMOUNT}"
        ))
    }
}

fn countries(value: &str) -> Result<Countries, String> {
    let codes = if value == ALL { "" } else { value };
    codes.parse().map_err(|error| {
        format!(
            "{error}; give codes separated by commas, such as LV,EE, or {ALL} for every destination"
        )
    })
}

fn count(value: &str) -> Result<u32, String> {
    let plain = value.bytes().all(|byte| byte.is_ascii_digit());
    plain
        .then(|| value.parse().ok())
        .flatten()
        .filter(|&count| count >= 1)
        .ok_or_else(|| {
            format!(
                "{} is not a limit; give a whole number from 1",
                Quoted(value)
            )
        })
}

fn rate(value: &str) -> Result<u32, String> {
    if value == "0" || value == OFF {
        return Ok(0);
    }
    count(value)
        .ok()
        .filter(|rate| *rate <= MAX_REQUESTS_PER_SECOND)
        .ok_or_else(|| {
            format!(
                "{} is not a rate; give a whole number from 1 to {MAX_REQUESTS_PER_SECOND}, or 0 for no limit",
                Quoted(value)
            )
        })
}

fn codes(value: &str) -> Result<u32, String> {
    let codes = count(value)
        .ok()
        .filter(|codes| *codes <= MAX_CODES_PER_DAY);
    codes.ok_or_else(|| {
        format!(
            "{} is not a limit; give a whole number from 1 to {MAX_CODES_PER_DAY}",
            Quoted(value)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        text.parse().expect(text)
    }

    #[test]
    fn changes_are_parsed() {
        let countries = |text: &str| RuleChange::Countries(text.parse().expect(text));
        for (text, expected) in [
            ("credit_limit=50", RuleChange::CreditLimit(money("50"))),
            ("credit_limit=0", RuleChange::CreditLimit(Money::ZERO)),
            ("countries=LV,ee", countries("EE LV")),
            ("countries=all", countries("")),
            ("countries=", countries("")),
            ("daily_cap=0.5", RuleChange::DailyCap(Some(money("0.5")))),
            ("daily_cap=off", RuleChange::DailyCap(None)),
            (
                "per_recipient_hour=1",
                RuleChange::PerRecipientHour(Some(1)),
            ),
            ("per_recipient_hour=off", RuleChange::PerRecipientHour(None)),
            (
                "approved_senders_only=true",
                RuleChange::ApprovedSendersOnly(true),
            ),
            (
                "approved_senders_only=false",
                RuleChange::ApprovedSendersOnly(false),
            ),
            (
                "admins_consent_only=true",
                RuleChange::AdminsConsentOnly(true),
            ),
            ("requests_per_second=0", RuleChange::RequestsPerSecond(0)),
            ("requests_per_second=off", RuleChange::RequestsPerSecond(0)),
            ("requests_per_second=25", RuleChange::RequestsPerSecond(25)),
            ("codes_per_day=1", RuleChange::CodesPerDay(1)),
            ("texts_for=all", RuleChange::TextsFor(TextRoles::All)),
            (
                "low_balance=10.00",
                RuleChange::LowBalance(Some(money("10"))),
            ),
            ("low_balance=off", RuleChange::LowBalance(None)),
            ("ported_numbers=true", RuleChange::PortedNumbers(true)),
            ("verify_price=0.02", RuleChange::VerifyPrice(money("0.02"))),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, fragment) in [
            ("credit_limit", "the keys are credit_limit, countries"),
            ("", "the keys are"),
            ("limit=1", "no key 'limit'; the keys are credit_limit"),
            ("approved_senders_only=on", "'on' is neither true nor false"),
            ("Credit_limit=1", "the keys are"),
            ("credit_limit=-1", "from 0.00"),
            ("credit_limit=1000000000.01", "to 1000000000.00"),
            ("credit_limit=off", "100.00"),
            ("credit_limit=", "100.00"),
            ("countries=LV,XX", "'XX'"),
            ("countries=ALL", "or all for every destination"),
            ("daily_cap=never", "or write off"),
            ("daily_cap=-0.01", "or write off"),
            ("per_recipient_hour=0", "whole number from 1, or write off"),
            ("per_recipient_hour=1.5", "whole number"),
            ("per_recipient_hour=+1", "whole number"),
            ("per_recipient_hour=4294967296", "whole number"),
            ("admins_consent_only=1", "'1' is neither true nor false"),
            ("requests_per_second=-1", "or 0 for no limit"),
            ("requests_per_second=0.5", "whole number"),
            ("requests_per_second=1000001", "from 1 to 1000000"),
            ("codes_per_day=0", "from 1 to 10000000"),
            ("codes_per_day=off", "from 1 to 10000000"),
            (
                "texts_for=owner",
                "separated by commas, or write all or none",
            ),
            ("low_balance=-1", "or write off"),
            ("ported_numbers=yes", "'yes' is neither true nor false"),
            ("verify_price=-0.01", "from 0.00"),
        ] {
            let reason = text.parse::<RuleChange>().expect_err(text);
            assert!(reason.contains(fragment), "{text}: {reason}");
        }
    }

    #[test]
    fn a_change_leaves_the_rest_alone() {
        let mut rules = SpendingRules {
            credit_limit: money("5"),
            daily_cap: Some(money("7")),
            approved_senders_only: true,
            ..SpendingRules::default()
        };
        for change in ["daily_cap=off", "per_recipient_hour=3", "countries=LV"] {
            change
                .parse::<RuleChange>()
                .expect(change)
                .apply(&mut rules);
        }
        let expected = SpendingRules {
            credit_limit: money("5"),
            daily_cap: None,
            per_recipient_hour: Some(3),
            countries: "LV".parse().expect("a country"),
            approved_senders_only: true,
            requests_per_second: 0,
            codes_per_day: 500,
            admins_consent_only: false,
            texts_for: TextRoles::All,
            low_balance: None,
            ported_numbers: false,
            verify_price: Money::ZERO,
        };
        assert_eq!(rules, expected);
    }
}
