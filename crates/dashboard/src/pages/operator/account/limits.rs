//! The form of an account's limits.

use domain::billing::{RuleChange, SpendingRules};
use domain::code_cap::ACCOUNT_DAY;

use crate::kit::form::Form;
use crate::pages::operator::Field;

/// The form, with the values that were shown before editing.
pub(super) struct LimitsForm {
    pub(super) before: LimitValues,
    pub(super) credit_limit: Field,
    pub(super) daily_cap: Field,
    pub(super) per_recipient_hour: Field,
    pub(super) requests_per_second: Field,
    pub(super) codes_per_day: Field,
    pub(super) countries: Field,
    pub(super) low_balance: Field,
    pub(super) verify_price: Field,
    pub(super) approved_senders_only: bool,
    pub(super) admins_consent_only: bool,
    pub(super) ported_numbers: bool,
}

/// Limits as texts; an empty text means no limit.
pub(super) struct LimitValues {
    pub(super) credit_limit: String,
    pub(super) daily_cap: String,
    pub(super) per_recipient_hour: String,
    pub(super) requests_per_second: String,
    pub(super) codes_per_day: String,
    pub(super) countries: String,
    pub(super) low_balance: String,
    pub(super) verify_price: String,
    pub(super) approved_senders_only: bool,
    pub(super) admins_consent_only: bool,
    pub(super) ported_numbers: bool,
}

impl LimitValues {
    fn new(rules: &SpendingRules) -> Self {
        let cap = rules.daily_cap.map(|cap| cap.to_string());
        let per_hour = rules.per_recipient_hour.map(|limit| limit.to_string());
        let low = rules.low_balance.map(|low| low.to_string());
        let rate = Some(rules.requests_per_second).filter(|rate| *rate > 0);
        Self {
            requests_per_second: rate.map(|rate| rate.to_string()).unwrap_or_default(),
            codes_per_day: rules.codes_per_day.to_string(),
            credit_limit: rules.credit_limit.to_string(),
            daily_cap: cap.unwrap_or_default(),
            per_recipient_hour: per_hour.unwrap_or_default(),
            countries: rules.countries.to_string(),
            low_balance: low.unwrap_or_default(),
            verify_price: rules.verify_price.to_string(),
            approved_senders_only: rules.approved_senders_only,
            admins_consent_only: rules.admins_consent_only,
            ported_numbers: rules.ported_numbers,
        }
    }

    fn from_hidden_fields(form: &Form) -> Self {
        let carried = |name: &str| form.get(name).unwrap_or_default().to_owned();
        Self {
            credit_limit: carried("was_credit_limit"),
            daily_cap: carried("was_daily_cap"),
            per_recipient_hour: carried("was_per_recipient_hour"),
            requests_per_second: carried("was_requests_per_second"),
            codes_per_day: carried("was_codes_per_day"),
            countries: carried("was_countries"),
            low_balance: carried("was_low_balance"),
            verify_price: carried("was_verify_price"),
            approved_senders_only: form.get("was_approved_senders_only") == Some("true"),
            admins_consent_only: form.get("was_admins_consent_only") == Some("true"),
            ported_numbers: form.get("was_ported_numbers") == Some("true"),
        }
    }
}

impl LimitsForm {
    pub(super) fn new(rules: &SpendingRules) -> Self {
        let now = LimitValues::new(rules);
        Self {
            credit_limit: Field::with(&*now.credit_limit),
            daily_cap: Field::with(&*now.daily_cap),
            per_recipient_hour: Field::with(&*now.per_recipient_hour),
            requests_per_second: Field::with(&*now.requests_per_second),
            codes_per_day: Field::with(&*now.codes_per_day),
            countries: Field::with(&*now.countries),
            low_balance: Field::with(&*now.low_balance),
            verify_price: Field::with(&*now.verify_price),
            approved_senders_only: now.approved_senders_only,
            admins_consent_only: now.admins_consent_only,
            ported_numbers: now.ported_numbers,
            before: now,
        }
    }

    pub(super) fn from_form(form: &Form) -> Self {
        Self {
            before: LimitValues::from_hidden_fields(form),
            credit_limit: Field::typed(form, "credit_limit"),
            daily_cap: Field::typed(form, "daily_cap"),
            per_recipient_hour: Field::typed(form, "per_recipient_hour"),
            requests_per_second: Field::typed(form, "requests_per_second"),
            codes_per_day: Field::typed(form, "codes_per_day"),
            countries: Field::typed(form, "countries"),
            low_balance: Field::typed(form, "low_balance"),
            verify_price: Field::typed(form, "verify_price"),
            approved_senders_only: form.get("approved_senders_only").is_some(),
            admins_consent_only: form.get("admins_consent_only").is_some(),
            ported_numbers: form.get("ported_numbers").is_some(),
        }
    }

    /// The edited limits. Invalid fields get a problem.
    pub(super) fn changes(&mut self) -> Vec<RuleChange> {
        let before = &self.before;
        let codes = ACCOUNT_DAY.to_string();
        let fields = [
            (
                "credit_limit",
                "0",
                &mut self.credit_limit,
                &before.credit_limit,
            ),
            ("daily_cap", "off", &mut self.daily_cap, &before.daily_cap),
            (
                "per_recipient_hour",
                "off",
                &mut self.per_recipient_hour,
                &before.per_recipient_hour,
            ),
            (
                "requests_per_second",
                "0",
                &mut self.requests_per_second,
                &before.requests_per_second,
            ),
            (
                "codes_per_day",
                &codes,
                &mut self.codes_per_day,
                &before.codes_per_day,
            ),
            ("countries", "all", &mut self.countries, &before.countries),
            (
                "low_balance",
                "off",
                &mut self.low_balance,
                &before.low_balance,
            ),
            (
                "verify_price",
                "0",
                &mut self.verify_price,
                &before.verify_price,
            ),
        ];
        let mut changes = Vec::new();
        for (key, none, field, before) in fields {
            if field.text == *before {
                continue;
            }
            let value = if field.text.is_empty() {
                none
            } else {
                &field.text
            };
            match format!("{key}={value}").parse::<RuleChange>() {
                Ok(change) => changes.push(change),
                Err(problem) => field.problem = Some(problem),
            }
        }
        if self.approved_senders_only != self.before.approved_senders_only {
            changes.push(RuleChange::ApprovedSendersOnly(self.approved_senders_only));
        }
        if self.admins_consent_only != self.before.admins_consent_only {
            changes.push(RuleChange::AdminsConsentOnly(self.admins_consent_only));
        }
        if self.ported_numbers != self.before.ported_numbers {
            changes.push(RuleChange::PortedNumbers(self.ported_numbers));
        }
        changes
    }

    pub(super) fn has_problem(&self) -> bool {
        let fields = [
            &self.credit_limit,
            &self.daily_cap,
            &self.per_recipient_hour,
            &self.requests_per_second,
            &self.codes_per_day,
            &self.countries,
            &self.low_balance,
            &self.verify_price,
        ];
        fields.iter().any(|field| field.problem.is_some())
    }
}
