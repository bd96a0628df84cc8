//! What can be wrong with the files, said so that whoever edits them finds the place.

use std::fmt;

use domain::Country;
use domain::shown::Shown;

use super::entries::OperatorId;

/// One of the four files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// `operators.csv`.
    Operators,
    /// `networks.csv`.
    Networks,
    /// `prefixes.csv`.
    Prefixes,
    /// `areas.csv`.
    Areas,
}

impl File {
    /// The columns, in order.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Operators => &["id", "country", "name"],
            Self::Networks => &["mcc", "mnc", "country", "operator_id", "name", "status"],
            Self::Prefixes => &["prefix", "country", "operator_id"],
            Self::Areas => &["prefix", "country"],
        }
    }
}

/// The name of the file.
impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operators => "operators.csv",
            Self::Networks => "networks.csv",
            Self::Prefixes => "prefixes.csv",
            Self::Areas => "areas.csv",
        })
    }
}

/// Something wrong with a file: where, and what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {fault}")]
pub struct Problem {
    /// The file.
    pub file: File,
    /// The line that the record starts on, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a line, and what is expected there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The first line names other columns.
    #[error("the first line is {}; expected is {}", Shown(.found), Shown(.expected))]
    Header {
        /// The line's fields.
        found: String,
        /// The columns of the file.
        expected: String,
    },
    /// Only a header, or not even that.
    #[error("there are no rows; expected is at least one")]
    Empty,
    /// Too few or too many fields.
    #[error("the line has {found} fields; expected are {expected}")]
    FieldCount {
        /// Fields on the line.
        found: usize,
        /// Columns of the file.
        expected: usize,
    },
    /// A quote within a field that does not start with one, or text after a closing quote.
    #[error(
        "a quote stands within a field; put the whole field in quotes and double those inside it"
    )]
    StrayQuote,
    /// A quote that is never closed.
    #[error("a field starts with a quote that is never closed")]
    OpenQuote,
    /// A value that its column does not take.
    #[error("{column} is {}; expected is {expected}", Shown(.found))]
    Value {
        /// The column's name.
        column: &'static str,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// A row for an operator that `operators.csv` does not have.
    #[error("no operator {0} is in operators.csv; expected is the ID of one that is")]
    UnknownOperator(OperatorId),
    /// A row whose country is not its operator's.
    #[error(
        "the country is {}, and operator {operator} is of {}; expected is the same",
        shown(*.found),
        shown(*.expected)
    )]
    OtherCountry {
        /// The operator.
        operator: OperatorId,
        /// The country on the line.
        found: Option<Country>,
        /// The operator's country.
        expected: Option<Country>,
    },
    /// A key that an earlier line has.
    #[error("the same {what} as on line {first}; expected is one line for each")]
    Duplicate {
        /// What is repeated.
        what: &'static str,
        /// The earlier line.
        first: usize,
    },
}

fn shown(country: Option<Country>) -> String {
    country.map_or_else(|| "no country".to_owned(), |country| country.to_string())
}

/// The problems found so far, up to a limit: a wrong column makes every line wrong, and nobody reads that many.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// How many are kept.
    pub(super) const MOST: usize = 100;

    /// Adds one, unless there are enough.
    pub(super) fn add(&mut self, file: File, line: usize, fault: Fault) {
        if !self.is_full() {
            self.0.push(Problem { file, line, fault });
        }
    }

    /// Whether there is no point in looking for more.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= Self::MOST
    }

    /// The value when nothing was wrong, else the problems in the order of the files and lines.
    pub(super) fn or<T>(mut self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|problem| (problem.file, problem.line));
        Err(self.0)
    }

    /// The problems, when there are any.
    pub(super) fn check(&mut self) -> Result<(), Vec<Problem>> {
        std::mem::take(self).or(())
    }
}
