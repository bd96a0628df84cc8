//! Problems in the data files, each with its file and line.

use std::fmt;

use domain::Country;
use domain::quoted::Quoted;

use super::entries::OperatorId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    Operators,
    Networks,
    Prefixes,
    Areas,
}

impl File {
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Operators => &["id", "country", "name"],
            Self::Networks => &["mcc", "mnc", "country", "operator_id", "name", "status"],
            Self::Prefixes => &["prefix", "country", "operator_id"],
            Self::Areas => &["prefix", "country"],
        }
    }
}

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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {fault}")]
pub struct Problem {
    pub file: File,
    /// The line that the record starts on, counted from 1.
    pub line: usize,
    pub fault: Fault,
}

/// What is wrong with a line, and what is expected instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The first line has other columns.
    #[error("the first line is {}; expected is {}", Quoted(.found), Quoted(.expected))]
    Header { found: String, expected: String },
    /// The file has only a header, or nothing.
    #[error("there are no rows; expected is at least one")]
    Empty,
    #[error("the line has {found} fields; expected are {expected}")]
    FieldCount { found: usize, expected: usize },
    /// A quote inside an unquoted field, or text after a closing quote.
    #[error(
        "a quote stands within a field; put the whole field in quotes and double those inside it"
    )]
    StrayQuote,
    #[error("a field starts with a quote that is never closed")]
    OpenQuote,
    /// A value that is not allowed in its column.
    #[error("{column} is {}; expected is {expected}", Quoted(.found))]
    Value {
        column: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("no operator {0} is in operators.csv; expected is the ID of one that is")]
    UnknownOperator(OperatorId),
    /// The row and its operator have different countries.
    #[error(
        "the country is {}, and operator {operator} is of {}; expected is the same",
        country_or_none(*.found),
        country_or_none(*.expected)
    )]
    OtherCountry {
        operator: OperatorId,
        found: Option<Country>,
        expected: Option<Country>,
    },
    /// The key is already used on an earlier line.
    #[error("the same {what} as on line {first}; expected is one line for each")]
    Duplicate {
        /// The columns that form the key.
        what: &'static str,
        /// The earlier line.
        first: usize,
    },
}

fn country_or_none(country: Option<Country>) -> String {
    country.map_or_else(|| "no country".to_owned(), |country| country.to_string())
}

/// A bounded list of problems: a wrong column would otherwise report every line.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) const MAX: usize = 100;

    /// Adds a problem, unless the list is full.
    pub(super) fn add(&mut self, file: File, line: usize, fault: Fault) {
        if !self.is_full() {
            self.0.push(Problem { file, line, fault });
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= Self::MAX
    }

    /// The value if there are no problems, else the problems sorted by file and line.
    pub(super) fn into_result<T>(mut self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|problem| (problem.file, problem.line));
        Err(self.0)
    }

    pub(super) fn check(&mut self) -> Result<(), Vec<Problem>> {
        std::mem::take(self).into_result(())
    }
}
