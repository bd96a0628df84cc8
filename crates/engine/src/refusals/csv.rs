//! Opt-out lists as CSV files with the header `number,sender`.

use std::fmt;
use std::io::Read;

use domain::opt_out::{OptOut, OptOutKey};
use domain::{Msisdn, Originator};

use crate::csv_cells::push_row;

/// Problems beyond this number are not reported.
const MAX_PROBLEMS: usize = 50;
/// The columns of an export; an import needs the first, and reads the second if it is there.
pub const HEADER: &str = "number,sender,since,via\r\n";

/// What is wrong with a file, and in which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProblem {
    pub line: u64,
    pub reason: String,
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// Reads a file. One with a problem is rejected as a whole. Columns besides `number` and `sender` are ignored.
pub fn read(file: impl Read) -> Result<Vec<OptOutKey>, Vec<LineProblem>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let problem = |line, reason: &dyn fmt::Display| LineProblem {
        line,
        reason: reason.to_string(),
    };
    let header = reader.headers();
    let header = header.map_err(|error| vec![problem(1, &error)])?;
    let column = |name: &str| {
        let mut cells = header.iter();
        cells.position(|cell| cell.trim().trim_start_matches('\u{feff}') == name)
    };
    let (Some(number), sender) = (column("number"), column("sender")) else {
        let reason = "the first line must be the header: number,sender";
        return Err(vec![problem(1, &reason)]);
    };
    let (mut keys, mut problems) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let read = match &record {
            Ok(record) => {
                let cell = |index: usize| record.get(index).unwrap_or("").trim();
                let line = record.position().map_or(0, csv::Position::line);
                let key = key(cell(number), sender.map_or("", cell));
                key.map_err(|reason| problem(line, &reason))
            }
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                Err(problem(line, &"the line is not valid UTF-8 CSV"))
            }
        };
        match read {
            Ok(key) => keys.push(key),
            Err(problem) => problems.push(problem),
        }
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
    }
    if problems.is_empty() {
        Ok(keys)
    } else {
        Err(problems)
    }
}

fn key(number: &str, sender: &str) -> Result<OptOutKey, String> {
    let recipient = Msisdn::parse(number).map_err(|error| error.to_string())?;
    let sender = match sender {
        "" => None,
        sender => Some(Originator::parse_approved(sender).map_err(|error| error.to_string())?),
    };
    Ok(OptOutKey { recipient, sender })
}

/// Writes an entry as a line of an export.
pub fn push(csv: &mut String, entry: &OptOut) {
    let number = entry.key.recipient.to_string();
    let sender = entry.key.sender.as_ref().map(ToString::to_string);
    let since = entry.since.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let sender = sender.as_deref().unwrap_or("");
    push_row(csv, &[&number, sender, &since, entry.via.name()]);
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use domain::opt_out::Via;

    use super::*;

    #[test]
    fn a_file_is_read_by_its_header() {
        for (name, file) in [
            ("both", "number,sender\n+37120000001,Acme\n37120000002,\n"),
            (
                "another order, a mark and further columns",
                "\u{feff}sender,number,x\r\nAcme,+371 2000 0001,1\r\n,37120000002\r\n",
            ),
        ] {
            let keys = read(file.as_bytes()).expect(name);
            let shown: Vec<_> = keys
                .iter()
                .map(|key| {
                    (
                        key.recipient.digits(),
                        key.sender.as_ref().map(ToString::to_string),
                    )
                })
                .collect();
            let expected = [
                ("37120000001", Some("Acme".to_owned())),
                ("37120000002", None),
            ];
            assert_eq!(shown, expected, "{name}");
        }
        let only_numbers = read("number\n+37120000001\n".as_bytes()).expect("one column");
        assert_eq!(only_numbers[0].sender, None);
        assert_eq!(read("number,sender\n".as_bytes()), Ok(Vec::new()));
    }

    #[test]
    fn every_wrong_line_is_named() {
        let file =
            "number,sender\n+37120000001,\nnobody,\n+37120000002,a sender that is too long\n";
        let problems = read(file.as_bytes()).expect_err("two lines are wrong");
        let lines: Vec<u64> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [3, 4]);
        assert!(
            problems[0].to_string().starts_with("line 3: 'nobody'"),
            "{}",
            problems[0]
        );
        let problems = read("msisdn\n+37120000001\n".as_bytes()).expect_err("no header");
        assert!(
            problems[0].reason.contains("number,sender"),
            "{}",
            problems[0]
        );
        assert_eq!(read("".as_bytes()).expect_err("empty").len(), 1);
    }

    #[test]
    fn an_export_can_be_imported() {
        let entry = OptOut {
            key: key("+37120000001", "+37120000009").expect("a key"),
            since: Timestamp::from_second(1_800_000_000).expect("a time"),
            via: Via::Api,
        };
        let mut csv = HEADER.to_owned();
        push(&mut csv, &entry);
        assert_eq!(
            csv,
            "number,sender,since,via\r\n+37120000001,+37120000009,2027-01-15 08:00:00,api\r\n"
        );
        assert_eq!(read(csv.as_bytes()), Ok(vec![entry.key]));
    }
}
