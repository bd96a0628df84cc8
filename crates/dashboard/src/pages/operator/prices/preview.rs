//! The preview of an import: what a new price list would change.

use askama::Template;
use axum::response::Response;
use domain::Money;
use engine::catalogue::PricePlan;
use engine::catalogue::prices::PriceRow;
use http::StatusCode;

use super::{PriceListChoice, PriceRowView};
use crate::Dashboard;
use crate::kit::format::count;
use crate::kit::page::{Frame, show};
use crate::kit::session::Operator;

const SHOWN: usize = 200;

#[derive(Template)]
#[template(path = "operator/prices_preview.html")]
pub(super) struct Preview {
    frame: Frame,
    channel: &'static str,
    account: String,
    back: String,
    currency: String,
    seen: u32,
    same: String,
    added: DifferenceList,
    removed: DifferenceList,
    changed: DifferenceList,
    is_nothing: bool,
    text: String,
    status: StatusCode,
}

struct DifferenceList {
    total: String,
    shown: Vec<Difference>,
    hidden: Option<String>,
}

struct Difference {
    row: PriceRowView,
    /// The current price; empty for an added row.
    before: String,
    /// The new price; empty for a removed row.
    after: String,
    change: String,
}

impl Preview {
    /// `seen` is the version of the previous preview.
    pub(super) fn new(
        dashboard: &Dashboard,
        operator: &Operator,
        choice: &PriceListChoice,
        plan: &PricePlan,
        text: String,
        seen: Option<u32>,
    ) -> Self {
        let difference = &plan.difference;
        let (frame, status) = match seen {
            None => (operator.frame(), StatusCode::OK),
            Some(_) => (
                operator.frame().with_problem(
                    "Someone else imported a list in the meantime, so nothing was imported. These are the differences from that list.",
                ),
                StatusCode::CONFLICT,
            ),
        };
        let is_nothing = difference.added.is_empty()
            && difference.removed.is_empty()
            && difference.changed.is_empty();
        Self {
            frame,
            channel: choice.channel.name(),
            account: choice.account_name().to_owned(),
            back: choice.address(),
            currency: dashboard.settings.currency.clone(),
            seen: plan.previous(),
            same: count(difference.same as u64),
            added: DifferenceList::new(&difference.added, Difference::added),
            removed: DifferenceList::new(&difference.removed, Difference::removed),
            changed: DifferenceList::new(&difference.changed, Difference::changed),
            is_nothing,
            text,
            status,
        }
    }

    pub(super) fn show(&self) -> Response {
        show(self.status, self)
    }
}

impl DifferenceList {
    fn new<T>(rows: &[T], read: impl Fn(&T) -> Difference) -> Self {
        let hidden = rows.len().saturating_sub(SHOWN);
        Self {
            total: count(rows.len() as u64),
            shown: rows.iter().take(SHOWN).map(read).collect(),
            hidden: (hidden > 0).then(|| count(hidden as u64)),
        }
    }
}

impl Difference {
    fn added(row: &PriceRow) -> Self {
        Self {
            row: PriceRowView::new(row),
            before: String::new(),
            after: row.rate.to_string(),
            change: String::new(),
        }
    }

    fn removed(row: &PriceRow) -> Self {
        Self {
            row: PriceRowView::new(row),
            before: row.rate.to_string(),
            after: String::new(),
            change: String::new(),
        }
    }

    fn changed((row, before): &(PriceRow, Money)) -> Self {
        Self {
            row: PriceRowView::new(row),
            before: before.to_string(),
            after: row.rate.to_string(),
            change: change(*before, row.rate),
        }
    }
}

/// The change of a price in percent.
fn change(before: Money, after: Money) -> String {
    let arrow = if after > before {
        "▲ +"
    } else {
        "▼ \u{2212}"
    };
    if before == Money::ZERO {
        return "▲ from nothing".to_owned();
    }
    let by = after.minus(before).micros().unsigned_abs();
    let whole = u128::from(before.micros().unsigned_abs());
    let per_mille = (u128::from(by) * 1000 + whole / 2) / whole;
    format!("{arrow}{}.{} %", per_mille / 10, per_mille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_changes_are_shown_in_percent() {
        for (before, after, expected) in [
            ("0.04", "0.05", "▲ +25.0 %"),
            ("0.05", "0.04", "▼ \u{2212}20.0 %"),
            ("0.03", "0.04", "▲ +33.3 %"),
            ("0.03", "0.05", "▲ +66.7 %"),
            ("0.10", "0", "▼ \u{2212}100.0 %"),
            ("0", "0.05", "▲ from nothing"),
            ("0.000001", "10000", "▲ +999999999900.0 %"),
        ] {
            let money = |text: &str| text.parse::<Money>().expect("an amount");
            assert_eq!(
                change(money(before), money(after)),
                expected,
                "{before} {after}"
            );
        }
    }
}
