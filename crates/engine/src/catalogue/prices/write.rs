//! Writing price lists, as `/rates/` returns them.

use std::fmt::Write as _;

use super::{PriceList, PriceRow};

/// The country name in the row for all other countries.
const ELSEWHERE: &str = "All other countries";

/// The header line of a CSV list.
pub(super) const HEADER: [&str; 7] = [
    "CountryName",
    "CountryCode",
    "Operator",
    "Network",
    "MCC",
    "MNC",
    "Rate",
];

/// Characters that begin a formula in a spreadsheet.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

impl PriceList {
    /// CSV by RFC 4180. A cell that a spreadsheet would run as a formula gets a `'` in front.
    pub fn to_csv(&self) -> String {
        let mut csv = HEADER.join(",");
        csv.push_str("\r\n");
        for row in &self.rows {
            let mcc = row.mcc.map(|mcc| mcc.to_string()).unwrap_or_default();
            let mnc = row.mnc.as_deref().unwrap_or_default();
            let (name, code) = country(row);
            push_cell(&mut csv, name);
            for cell in [
                code,
                &row.operator,
                &row.network,
                &mcc,
                mnc,
                &row.rate.to_string(),
            ] {
                csv.push(',');
                push_cell(&mut csv, cell);
            }
            csv.push_str("\r\n");
        }
        csv
    }

    pub fn to_json(&self) -> String {
        let mut json = String::with_capacity(2 + 160 * self.rows.len());
        for row in &self.rows {
            json.push(if json.is_empty() { '[' } else { ',' });
            let (name, code) = country(row);
            let text = |text: &str| serde_json::Value::from(text).to_string();
            let mcc = row.mcc.map_or("null".to_owned(), |mcc| mcc.to_string());
            let mnc = row.mnc.as_deref().map_or("null".to_owned(), text);
            write!(
                json,
                r#"{{"CountryName":{},"CountryCode":{},"Operator":{},"Network":{},"MCC":{mcc},"MNC":{mnc},"Rate":"{}"}}"#,
                text(name),
                text(code),
                text(&row.operator),
                text(&row.network),
                row.rate,
            )
            .expect("strings take everything");
        }
        if json.is_empty() {
            json.push('[');
        }
        json.push(']');
        json
    }
}

fn country(row: &PriceRow) -> (&str, &str) {
    match &row.country {
        Some(country) => (country.name(), country.as_str()),
        None => (ELSEWHERE, ""),
    }
}

/// Writes a CSV cell by RFC 4180, with a `'` in front of anything that a spreadsheet would run as a formula.
pub fn push_cell(csv: &mut String, cell: &str) {
    let guard = if is_formula(cell) { "'" } else { "" };
    if cell.contains([',', '"', '\r', '\n']) {
        write!(csv, "\"{guard}{}\"", cell.replace('"', "\"\"")).expect("strings take everything");
    } else {
        csv.push_str(guard);
        csv.push_str(cell);
    }
}

/// A cell that begins with `'` and a formula gets one more `'`, so that reading it back returns the same text.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(FORMULA)
}

/// Removes the `'` that [`push_cell`] added.
pub(super) fn unguarded(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if is_formula(rest) => rest,
        _ => cell,
    }
}
