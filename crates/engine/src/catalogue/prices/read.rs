//! Reading price lists: every row is checked, and every problem names its row.

use std::collections::HashMap;
use std::fmt;

use domain::quoted::Quoted;
use domain::{Country, Money, Network};
use numbering::reference::Reference;
use serde_json::{Map, Value};

use super::write::{HEADER, unguarded};
use super::{Key, PriceList, PriceRow};

/// Operator names that mark a default row.
const DEFAULTS: [&str; 3] = ["All", "All other carriers", "Default"];
const MAX_RATE: Money = Money::from_micros(10_000 * 1_000_000);
/// Problems beyond this number are not reported.
const MAX_PROBLEMS: usize = 50;

/// The form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With the same header line as `/rates/?format=csv`.
    Csv,
    /// An array of objects, as `/rates/?format=json` returns.
    Json,
}

/// What is wrong with a list, and in which row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceProblem {
    /// The line of a CSV file, or the index of an array item, counted from 1.
    pub row: usize,
    /// What is wrong, and what is expected.
    pub reason: String,
}

impl fmt::Display for PriceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}: {}", self.row, self.reason)
    }
}

/// A row before it is checked.
struct RawRow {
    row: usize,
    cells: [String; 7],
}

impl PriceList {
    /// Reads a list. A list with a problem is rejected as a whole.
    pub fn read(
        text: &str,
        format: Format,
        reference: &Reference,
    ) -> Result<Self, Vec<PriceProblem>> {
        let raw = match format {
            Format::Csv => read_csv(text),
            Format::Json => read_json(text),
        };
        let raw = raw.map_err(|problem| vec![problem])?;
        let (keyed, mut problems) = check_all(raw, reference);
        problems.truncate(MAX_PROBLEMS);
        if problems.is_empty() {
            Ok(Self::from_rows(keyed))
        } else {
            Err(problems)
        }
    }

    /// Reads a stored list. Rows that the reference data no longer covers are skipped and logged.
    pub(crate) fn read_back(csv: &str, reference: &Reference) -> Self {
        let (keyed, mut problems) = match read_csv(csv) {
            Ok(raw) => check_all(raw, reference),
            Err(problem) => (Vec::new(), vec![problem]),
        };
        if let Some(first) = problems.pop() {
            let count = problems.len() + 1;
            tracing::error!(count, problem = %first, "rows of the imported price list are skipped; import the list again");
        }
        Self::from_rows(keyed)
    }
}

/// Returns the valid rows and the problems of the others.
fn check_all(raw: Vec<RawRow>, reference: &Reference) -> (Vec<(Key, PriceRow)>, Vec<PriceProblem>) {
    let mut seen: HashMap<Key, usize> = HashMap::with_capacity(raw.len());
    let mut keyed = Vec::with_capacity(raw.len());
    let mut problems = Vec::new();
    for raw in raw {
        let row = raw.row;
        let checked =
            check(raw, reference).and_then(|(key, checked)| match seen.insert(key, row) {
                None => Ok((key, checked)),
                Some(first) => Err(format!(
                    "it sets the same price as row {first}; keep one of them"
                )),
            });
        match checked {
            Ok(checked) => keyed.push(checked),
            Err(reason) => problems.push(PriceProblem { row, reason }),
        }
    }
    (keyed, problems)
}

fn read_csv(text: &str) -> Result<Vec<RawRow>, PriceProblem> {
    // For a file with CR LF, the reader counts lines one too low.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let problem = |row, error: &dyn fmt::Display| PriceProblem {
        row,
        reason: error.to_string(),
    };
    let header = reader.headers().map_err(|error| problem(1, &error))?;
    if !header.iter().eq(HEADER) {
        let reason = format!("the header line must be {}", HEADER.join(","));
        return Err(problem(1, &reason));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let at = |position: Option<&csv::Position>| position.map_or(0, csv::Position::line);
        let line = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let record = record.map_err(|error| problem(line(at(error.position())), &error))?;
        let mut cells = record.iter().map(|cell| unguarded(cell).trim().to_owned());
        rows.push(RawRow {
            row: line(at(record.position())),
            cells: std::array::from_fn(|_| cells.next().unwrap_or_default()),
        });
    }
    Ok(rows)
}

fn read_json(text: &str) -> Result<Vec<RawRow>, PriceProblem> {
    let problem = |row, reason: String| PriceProblem { row, reason };
    let list: Vec<Map<String, Value>> = serde_json::from_str(text)
        .map_err(|error| problem(error.line(), format!("not an array of objects: {error}")))?;
    let read = |(index, item): (usize, Map<String, Value>)| {
        let cell = |name: &str| {
            let found = item.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            match found.map(|(_, value)| value) {
                None | Some(Value::Null) => Ok(String::new()),
                Some(Value::String(text)) => Ok(text.trim().to_owned()),
                Some(Value::Number(number)) => Ok(number.to_string()),
                Some(other) => Err(problem(
                    index,
                    format!("{name} is {other}; give a text or a number"),
                )),
            }
        };
        let mut cells: [String; 7] = Default::default();
        for (read, name) in cells.iter_mut().zip(HEADER) {
            *read = cell(name)?;
        }
        Ok(RawRow { row: index, cells })
    };
    (1..).zip(list).map(read).collect()
}

/// Checks a row and determines which price it sets.
fn check(raw: RawRow, reference: &Reference) -> Result<(Key, PriceRow), String> {
    let [_, code, operator, network, mcc, mnc, rate] = raw.cells;
    let rate: Money = rate.parse().map_err(|error| format!("Rate: {error}"))?;
    if !(Money::ZERO..=MAX_RATE).contains(&rate) {
        return Err(format!("Rate: {rate} is not between 0 and {MAX_RATE}"));
    }
    let is_default = DEFAULTS.contains(&operator.as_str());
    if operator.is_empty() || network.is_empty() {
        return Err("Operator and Network must have a name, or 'All'".to_owned());
    }
    let country =
        match code.as_str() {
            "" if is_default && mnc.is_empty() => None,
            "" => return Err(
                "CountryCode is empty; only a row of 'Default' for all other countries has none"
                    .to_owned(),
            ),
            code => Some(Country::parse(code).map_err(|error| format!("CountryCode: {error}"))?),
        };
    let mcc = match mcc.as_str() {
        "" => country.and_then(|country| reference.main_mcc(country)),
        mcc => Some(check_mcc(mcc)?),
    };
    let key = match country {
        None => Key::Elsewhere,
        Some(country) if !mnc.is_empty() => Key::Network(country, check_network(mcc, &mnc)?),
        Some(country) if is_default => Key::Country(country),
        Some(country) => {
            let found = reference.operator_named(country, &operator);
            let unknown = || {
                format!(
                    "Operator: {} is not an operator of {country}; name one that the reference data knows, or give an MNC",
                    Quoted(&operator)
                )
            };
            Key::Operator(found.ok_or_else(unknown)?.id)
        }
    };
    let mnc = Some(mnc).filter(|mnc| !mnc.is_empty());
    let row = PriceRow {
        country,
        operator,
        network,
        mcc,
        mnc,
        rate,
    };
    Ok((key, row))
}

fn check_mcc(text: &str) -> Result<u16, String> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| format!("MCC: {} is not three digits", Quoted(text)))
}

fn check_network(mcc: Option<u16>, mnc: &str) -> Result<Network, String> {
    let network = mcc.and_then(|mcc| Network::new(&format!("{mcc:03}"), mnc));
    network.ok_or_else(|| {
        format!(
            "MNC: {} is not two or three digits under an MCC",
            Quoted(mnc)
        )
    })
}
