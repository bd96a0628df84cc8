//! Reads the data files into checked entries.

use std::ops::ControlFlow;

use csv::StringRecord;
use domain::number::msisdn::MAX_DIGITS;
use domain::{Country, Network};

use super::Files;
use super::entries::{NetworkEntry, NetworkStatus, OperatorId, Prefix};
use super::problem::{Fault, File, Problem, Problems};
use super::records::for_each_record;

/// The entries in the order of the files, except for the operators, which are sorted by ID.
pub(super) struct Tables {
    pub(super) operators: Vec<OperatorRow>,
    pub(super) networks: Vec<NetworkEntry>,
    pub(super) prefixes: Vec<Prefix>,
    pub(super) areas: Vec<Area>,
}

/// A row of `operators.csv`. Networks are in another file.
pub(super) struct OperatorRow {
    pub(super) id: OperatorId,
    pub(super) country: Option<Country>,
    pub(super) name: Box<str>,
}

/// The leading digits of a country's numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) prefix: u64,
    pub(super) country: Country,
}

pub(super) fn read(files: &Files<'_>) -> Result<Tables, Vec<Problem>> {
    let mut problems = Problems::default();
    let operators = read_operators(files.operators, &mut problems);
    // The other files refer to operators, so a wrong operator would be reported again for each of its rows.
    problems.check()?;
    let tables = Tables {
        networks: read_networks(files.networks, &operators, &mut problems),
        prefixes: read_prefixes(files.prefixes, &operators, &mut problems),
        areas: read_areas(files.areas, &mut problems),
        operators,
    };
    problems.into_result(tables)
}

fn read_operators(text: &str, problems: &mut Problems) -> Vec<OperatorRow> {
    let mut countries = Countries::default();
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    let mut operators = read_rows(File::Operators, text, problems, |line, fields| {
        let row = OperatorRow {
            id: operator_id("id", &fields[0])?,
            country: countries.read_optional(&fields[1])?,
            name: name(&fields[2])?,
        };
        ids.push((row.id, line));
        names.push(((row.country, row.name.to_lowercase()), line));
        Ok(row)
    });
    check_duplicates(File::Operators, "ID", ids, problems);
    check_duplicates(File::Operators, "country and name", names, problems);
    operators.sort_unstable_by_key(|operator| operator.id);
    operators
}

fn read_networks(
    text: &str,
    operators: &[OperatorRow],
    problems: &mut Problems,
) -> Vec<NetworkEntry> {
    let mut countries = Countries::default();
    let mut keys = Vec::new();
    let networks = read_rows(File::Networks, text, problems, |line, fields| {
        let row = NetworkEntry {
            network: network(&fields[0], &fields[1])?,
            country: countries.read_optional(&fields[2])?,
            operator: operator_id("operator_id", &fields[3])?,
            name: name(&fields[4])?,
            status: status(&fields[5])?,
        };
        check_operator(operators, row.operator, row.country)?;
        keys.push(((row.network, row.country, row.operator), line));
        Ok(row)
    });
    let what = "network, country and operator";
    check_duplicates(File::Networks, what, keys, problems);
    networks
}

fn read_prefixes(text: &str, operators: &[OperatorRow], problems: &mut Problems) -> Vec<Prefix> {
    let mut countries = Countries::default();
    let mut keys = Vec::new();
    let prefixes = read_rows(File::Prefixes, text, problems, |line, fields| {
        let row = Prefix {
            prefix: digits(&fields[0])?,
            country: countries.read_optional(&fields[1])?,
            operator: operator_id("operator_id", &fields[2])?,
        };
        check_operator(operators, row.operator, row.country)?;
        keys.push((row.prefix, line));
        Ok(row)
    });
    check_duplicates(File::Prefixes, "prefix", keys, problems);
    prefixes
}

fn read_areas(text: &str, problems: &mut Problems) -> Vec<Area> {
    let mut countries = Countries::default();
    let mut keys = Vec::new();
    let areas = read_rows(File::Areas, text, problems, |line, fields| {
        let row = Area {
            prefix: digits(&fields[0])?,
            country: countries.read(&fields[1])?,
        };
        keys.push((row.prefix, line));
        Ok(row)
    });
    check_duplicates(File::Areas, "prefix", keys, problems);
    areas
}

/// Reads each record below the header and adds its fault to the problems.
fn read_rows<T>(
    file: File,
    text: &str,
    problems: &mut Problems,
    mut read_row: impl FnMut(usize, &StringRecord) -> Result<T, Fault>,
) -> Vec<T> {
    let mut rows = Vec::new();
    let mut records = 0;
    let end = for_each_record(text, |line, record| {
        records += 1;
        if records == 1 {
            return match record.and_then(|header| check_header(file, header)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(fault) => {
                    problems.add(file, line, fault);
                    ControlFlow::Break(())
                }
            };
        }
        let row = record.and_then(|fields| {
            check_count(file, fields)?;
            read_row(line, fields)
        });
        match row {
            Ok(row) => rows.push(row),
            Err(fault) => problems.add(file, line, fault),
        }
        if problems.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    if end.is_continue() && records <= 1 {
        problems.add(file, 1, Fault::Empty);
    }
    rows
}

fn check_header(file: File, header: &StringRecord) -> Result<(), Fault> {
    if header.iter().eq(file.columns().iter().copied()) {
        return Ok(());
    }
    Err(Fault::Header {
        found: header.iter().collect::<Vec<_>>().join(","),
        expected: file.columns().join(","),
    })
}

fn check_count(file: File, fields: &StringRecord) -> Result<(), Fault> {
    let (found, expected) = (fields.len(), file.columns().len());
    if found == expected {
        Ok(())
    } else {
        Err(Fault::FieldCount { found, expected })
    }
}

fn check_operator(
    operators: &[OperatorRow],
    operator: OperatorId,
    found: Option<Country>,
) -> Result<(), Fault> {
    let known = operators
        .binary_search_by_key(&operator, |row| row.id)
        .map_err(|_| Fault::UnknownOperator(operator))?;
    let expected = operators[known].country;
    if found == expected {
        return Ok(());
    }
    Err(Fault::OtherCountry {
        operator,
        found,
        expected,
    })
}

/// The parsed value, or a fault that says what the column expects.
fn value<T>(
    read: Option<T>,
    column: &'static str,
    found: &str,
    expected: &'static str,
) -> Result<T, Fault> {
    read.ok_or_else(|| Fault::Value {
        column,
        found: found.to_owned(),
        expected,
    })
}

/// Parses ASCII digits without a sign or leading zeros.
fn whole_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    // `parse` alone would accept a plus sign.
    let is_plain = text.starts_with(|first: char| matches!(first, '1'..='9'));
    is_plain.then(|| text.parse().ok())?
}

fn operator_id(column: &'static str, text: &str) -> Result<OperatorId, Fault> {
    let read = whole_number(text).and_then(OperatorId::new);
    value(read, column, text, "a whole number from 1 to 4294967295")
}

fn digits(text: &str) -> Result<u64, Fault> {
    let read = (text.len() <= MAX_DIGITS)
        .then(|| whole_number(text))
        .flatten();
    value(
        read,
        "prefix",
        text,
        "1 to 15 digits in international form, such as 37129",
    )
}

/// Parses countries. Rows of one country are mostly adjacent, so the last result is reused.
#[derive(Default)]
struct Countries {
    last: Option<Country>,
}

impl Countries {
    fn read(&mut self, text: &str) -> Result<Country, Fault> {
        if let Some(last) = self.last.filter(|last| last.as_str() == text) {
            return Ok(last);
        }
        self.last = Country::parse(text).ok();
        let expected = "an ISO 3166-1 alpha-2 code, such as LV";
        value(self.last, "country", text, expected)
    }

    fn read_optional(&mut self, text: &str) -> Result<Option<Country>, Fault> {
        if text.is_empty() {
            return Ok(None);
        }
        self.read(text).map(Some)
    }
}

fn network(mcc: &str, mnc: &str) -> Result<Network, Fault> {
    let is_mcc = Network::new(mcc, "00").map(drop);
    value(is_mcc, "mcc", mcc, "three digits, such as 247")?;
    value(
        Network::new(mcc, mnc),
        "mnc",
        mnc,
        "two or three digits, such as 01",
    )
}

fn name(text: &str) -> Result<Box<str>, Fault> {
    let is_name =
        !text.is_empty() && text == text.trim() && !text.chars().any(|c| c.is_ascii_control());
    let expected = "a name on one line, without spaces around it";
    value(is_name.then(|| text.into()), "name", text, expected)
}

fn status(text: &str) -> Result<NetworkStatus, Fault> {
    let expected = "operational, not operational, planned, testing, reserved or unknown";
    value(NetworkStatus::parse(text), "status", text, expected)
}

/// Reports each key that an earlier line has.
fn check_duplicates<K: Ord>(
    file: File,
    what: &'static str,
    mut keys: Vec<(K, usize)>,
    problems: &mut Problems,
) {
    // Sorting is much faster than a set of this many keys, because the files are mostly sorted already.
    keys.sort();
    for same in keys.chunk_by(|(key, _), (next, _)| key == next) {
        let (_, first) = same[0];
        for &(_, line) in &same[1..] {
            problems.add(file, line, Fault::Duplicate { what, first });
        }
    }
}
