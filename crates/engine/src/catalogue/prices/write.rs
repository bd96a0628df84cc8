//! Writing price lists, as `/rates/` answers them.

use std::fmt::Write as _;

use super::{PriceList, PriceRow};

/// What the row for all other countries says in the place of a country's name.
const ELSEWHERE: &str = "All other countries";

/// The first line of a list as CSV.
pub(super) const HEADER: [&str; 7] = [
    "CountryName",
    "CountryCode",
    "Operator",
    "Network",
    "MCC",
    "MNC",
    "Rate",
];

/// What a spreadsheet takes for the beginning of a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

impl PriceList {
    /// As CSV by RFC 4180. A cell that a spreadsheet would run as a formula gets a `'` in front.
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

    /// As a JSON array.
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

/// Writes a cell of a CSV file by RFC 4180, with a `'` in front of what a spreadsheet would run as a formula.
pub fn push_cell(csv: &mut String, cell: &str) {
    let guard = if is_formula(cell) { "'" } else { "" };
    if cell.contains([',', '"', '\r', '\n']) {
        write!(csv, "\"{guard}{}\"", cell.replace('"', "\"\"")).expect("strings take everything");
    } else {
        csv.push_str(guard);
        csv.push_str(cell);
    }
}

/// A cell that itself begins with the guard and then a formula gets one more, so that it is read back as it was.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(FORMULA)
}

/// Takes the guard off that [`PriceList::to_csv`] put there.
pub(super) fn unguarded(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if is_formula(rest) => rest,
        _ => cell,
    }
}
