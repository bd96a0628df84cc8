//! Bulk sending: one SMS for each row of a CSV file, whose columns fill in the text.

use std::borrow::Cow;

use domain::message::send_window::SendWindow;
use domain::number::time_zone::main_time_zone;
use domain::{Access, Money, Msisdn, Timestamp};
use jiff::tz::TimeZone;
use numbering::reference::Reference;

use super::submit::{SmsInput, Submit, SubmitError, To};
use crate::refusals::csv::LineProblem;

/// Rows of a file.
pub const MAX_ROWS: usize = 10_000;
/// Problems beyond this number are not reported.
const MAX_PROBLEMS: usize = 50;
/// The names of the column with the number.
const NUMBER: [&str; 3] = ["to", "number", "phone"];
/// After so many rows, other tasks get their turn.
const ROWS_PER_TURN: usize = 64;

/// A message to one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRow {
    /// The line in the file.
    pub line: u64,
    pub to: String,
    pub text: String,
    /// When it is sent; `None` for now.
    pub send_at: Option<Timestamp>,
}

/// What all messages have in common.
#[derive(Debug, Clone, Copy)]
pub struct BulkSettings<'a> {
    pub from: &'a str,
    pub test_mode: Option<&'a str>,
}

impl BulkRow {
    /// The request for this row.
    pub fn order<'a>(&'a self, settings: BulkSettings<'a>) -> SmsInput<'a> {
        SmsInput {
            to: To::List(vec![Cow::Borrowed(&self.to)]),
            from: Cow::Borrowed(settings.from),
            message: Cow::Borrowed(&self.text),
            dlr_url: None,
            priority: Some(Cow::Borrowed("low")),
            scheduled: self
                .send_at
                .map(|at| Cow::Owned(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
            udh: None,
            coding: None,
            test_mode: settings.test_mode.map(Cow::Borrowed),
            expire_in: None,
            correct_by: None,
        }
    }
}

/// What the messages of a file would cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BulkCost {
    pub parts: u64,
    pub total: Money,
}

/// A piece of a text: as it is, or the place of a column.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Plain(&'a str),
    Column(usize),
}

/// Reads a file. The first line names the columns; `{name}` in the text is replaced by the value in the column `name`.
pub fn read(text: &str, file: &str) -> Result<Vec<BulkRow>, Vec<LineProblem>> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(file.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.iter().map(column_name).collect::<Vec<_>>(),
        Err(error) => return Err(vec![problem(1, &error)]),
    };
    let number = header
        .iter()
        .position(|name| NUMBER.contains(&name.as_str()));
    let Some(number) = number else {
        return Err(vec![problem(
            1,
            &"the first line must name the columns, and one of them must be: to",
        )]);
    };
    let pieces = pieces(text, &header).map_err(|reason| vec![problem(1, &reason)])?;
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error
                    .position()
                    .map_or(0, |position| line_of(file, position));
                problems.push(problem(line, &"the line is not valid UTF-8 CSV"));
                continue;
            }
        };
        let line = record
            .position()
            .map_or(0, |position| line_of(file, position));
        let cell = |index: usize| record.get(index).unwrap_or("").trim();
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        let merged = pieces.iter().map(|piece| match piece {
            Piece::Plain(text) => *text,
            Piece::Column(index) => cell(*index),
        });
        rows.push(BulkRow {
            line,
            to: cell(number).to_owned(),
            text: merged.collect(),
            send_at: None,
        });
        if rows.len() > MAX_ROWS || problems.len() >= MAX_PROBLEMS {
            break;
        }
    }
    if rows.len() > MAX_ROWS {
        let reason = format!("a file has at most {MAX_ROWS} rows; send the others separately");
        problems.push(problem(rows[MAX_ROWS].line, &reason));
    }
    if rows.is_empty() && problems.is_empty() {
        problems.push(problem(
            2,
            &"there is no row below the names of the columns",
        ));
    }
    if problems.is_empty() {
        Ok(rows)
    } else {
        Err(problems)
    }
}

/// Schedules the rows whose recipients are outside the window, by the main time zone of their country; UTC if the country
/// is unknown.
pub fn schedule(rows: &mut [BulkRow], window: SendWindow, reference: &Reference, now: Timestamp) {
    for row in rows {
        let country = Msisdn::parse(&row.to).ok();
        let country = country.and_then(|to| reference.locate(&to).country);
        let zone = country.and_then(main_time_zone).unwrap_or(TimeZone::UTC);
        row.send_at = window.next_start(now, &zone);
    }
}

/// The line of a record. The reader's position is before the line breaks and empty lines that precede the record.
fn line_of(file: &str, position: &csv::Position) -> u64 {
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = file.as_bytes().get(start..).unwrap_or_default();
    let breaks = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + breaks.filter(|byte| **byte == b'\n').count() as u64
}

fn column_name(cell: &str) -> String {
    let cell = cell.trim_start_matches('\u{feff}').trim();
    cell.to_lowercase()
}

/// Splits a text at its `{names}`. `{{` and `}}` are braces.
fn pieces<'a>(text: &'a str, header: &[String]) -> Result<Vec<Piece<'a>>, String> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        pieces.push(Piece::Plain(before));
        let doubled = after.starts_with("{{") || after.starts_with("}}");
        if doubled || after.starts_with('}') {
            pieces.push(Piece::Plain(&after[..1]));
            rest = &after[if doubled { 2 } else { 1 }..];
            continue;
        }
        let Some((name, left)) = after[1..].split_once('}') else {
            return Err("the text has a { without a }; write {{ for a brace".to_owned());
        };
        let name = column_name(name);
        let Some(column) = header.iter().position(|known| *known == name) else {
            return Err(format!(
                "the text has {{{name}}}, but the file has no column of that name; its columns are: {}",
                header.join(", ")
            ));
        };
        pieces.push(Piece::Column(column));
        rest = left;
    }
    pieces.push(Piece::Plain(rest));
    Ok(pieces)
}

fn problem(line: u64, reason: &dyn std::fmt::Display) -> LineProblem {
    LineProblem {
        line,
        reason: reason.to_string(),
    }
}

impl Submit {
    /// What the messages would cost, or what is wrong with them. Nothing is stored.
    pub async fn cost_bulk(
        &self,
        access: &Access,
        settings: BulkSettings<'_>,
        rows: &[BulkRow],
    ) -> Result<BulkCost, Vec<LineProblem>> {
        let (mut sum, mut problems) = (BulkCost::default(), Vec::new());
        for (place, row) in rows.iter().enumerate() {
            if place % ROWS_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
            match self.cost(access, row.order(settings)).await {
                Ok(costs) => {
                    for cost in costs {
                        sum.parts += u64::from(cost.shape.parts);
                        sum.total = sum.total.plus(cost.total);
                    }
                }
                Err(SubmitError::Invalid(invalid)) => {
                    problems.push(problem(row.line, &invalid.reason));
                }
                Err(error) => problems.push(problem(row.line, &error)),
            }
            if problems.len() >= MAX_PROBLEMS {
                break;
            }
        }
        if problems.is_empty() {
            Ok(sum)
        } else {
            Err(problems)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, file: &str) -> Result<Vec<(u64, String, String)>, Vec<LineProblem>> {
        let rows = read(text, file)?;
        let row = |row: BulkRow| (row.line, row.to, row.text);
        Ok(rows.into_iter().map(row).collect())
    }

    #[test]
    fn each_row_fills_in_the_text() {
        let file = "\u{feff}Name,To ,code\r\nAnn, +371 1 ,\"a,b\"\r\n\r\nBob,+3712\r\n";
        let expected = [
            (2, "+371 1".to_owned(), "Hi Ann: a,b {x}".to_owned()),
            (4, "+3712".to_owned(), "Hi Bob:  {x}".to_owned()),
        ];
        assert_eq!(texts("Hi {name}: {CODE} {{x}}", file), Ok(expected.into()));
    }

    #[test]
    fn rows_wait_for_the_window_of_their_country() {
        let file = "to\n+37126000001\n+447700900000\nnobody\n";
        let mut rows = read("x", file).expect("a valid file");
        let window = SendWindow::parse("09:00", "20:00").expect("a window");
        let window = window.expect("two times");
        for (now, expected) in [
            ("06:30", [Some("07:00"), Some("09:00"), Some("09:00")]),
            ("08:30", [None, Some("09:00"), Some("09:00")]),
            ("12:00", [None, None, None]),
        ] {
            let now = format!("2026-01-15T{now}:00Z").parse().expect("a time");
            schedule(&mut rows, window, &Reference::embedded(), now);
            let times = rows.iter().map(|row| row.send_at);
            let times = times.map(|at| at.map(|at| at.strftime("%H:%M").to_string()));
            let expected = expected.map(|time| time.map(str::to_owned));
            assert_eq!(times.collect::<Vec<_>>(), expected, "{now}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let many = format!("to\n{}", "+3711\n".repeat(MAX_ROWS + 1));
        for (text, file, line, words) in [
            ("x", "name\nAnn\n", 1, "one of them must be: to"),
            ("{nme}", "to,name\n1,Ann\n", 1, "its columns are: to, name"),
            ("{name", "to,name\n1,Ann\n", 1, "{ without a }"),
            ("x", "to\n", 2, "no row"),
            ("x", "", 1, "one of them must be: to"),
            ("x", many.as_str(), 10_002, "at most 10000 rows"),
        ] {
            let problems = read(text, file).expect_err(words);
            assert_eq!(problems[0].line, line, "{words}");
            assert!(problems[0].reason.contains(words), "{problems:?}");
        }
    }
}
