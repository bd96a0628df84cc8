//! The numbers to correct: those of the table that the tests compare with Google's results.

use anyhow::{Context, Result};
use serde_json::json;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use testkit::http;

/// The categories of common numbers. The other categories of the table are rare on purpose.
const EVERYDAY: [&str; 6] = [
    "local with trunk prefix",
    "local as printed",
    "local without prefix",
    "00",
    "without plus",
    "plus and separators",
];

/// Numbers, each with its country.
pub(crate) struct NumberList {
    pub(crate) name: &'static str,
    pub(crate) items: Vec<(String, String)>,
}

impl NumberList {
    /// The everyday part of the table, and the whole table.
    pub(crate) fn read_both(table: &Path) -> Result<[Self; 2]> {
        let text = std::fs::read_to_string(table).with_context(|| {
            format!(
                "cannot read {}; run this from the project's folder",
                table.display()
            )
        })?;
        let rows: Vec<[String; 3]> = text.lines().skip(1).filter_map(cells).collect();
        let items = |wanted: &dyn Fn(&str) -> bool| {
            let wanted = rows.iter().filter(|row| wanted(&row[0]));
            wanted.map(|row| (row[1].clone(), row[2].clone())).collect()
        };
        Ok([
            Self {
                name: "everyday numbers",
                items: items(&|category| EVERYDAY.contains(&category)),
            },
            Self {
                name: "the whole table",
                items: items(&|_| true),
            },
        ])
    }

    /// A line for each: the number, a tab, the country.
    pub(crate) fn lines(&self) -> String {
        let mut lines = String::new();
        for (number, country) in &self.items {
            writeln!(lines, "{number}\t{country}").expect("writing to a string cannot fail");
        }
        lines
    }

    /// Requests with `count` numbers each. Every number is in at least one of them.
    pub(crate) fn requests(&self, addr: SocketAddr, token: &str, count: usize) -> Vec<Vec<u8>> {
        let headers = [
            ("Content-Type", "application/json"),
            ("X-Service-Token", token),
        ];
        let requests = self.items.len().div_ceil(count);
        let mut items = self.items.iter().cycle();
        let mut request = || {
            let body: Vec<_> = items
                .by_ref()
                .take(count)
                .map(|(number, country)| json!({"Number": number, "CountryIso": country}))
                .collect();
            let body = json!(body).to_string();
            http::encode(addr, "POST", "/numberCorrection", &headers, body.as_bytes())
        };
        (0..requests).map(|_| request()).collect()
    }
}

/// The first three cells of a row. Rows with quotes, which have a comma in the number, are skipped.
fn cells(row: &str) -> Option<[String; 3]> {
    if row.contains('"') {
        return None;
    }
    let mut cells = row.split(',').map(str::to_owned);
    Some([cells.next()?, cells.next()?, cells.next()?])
}
