//! `switchboard numbers …`

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use domain::Country;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum NumbersCommand {
    /// Correct every number of a CSV file
    Correct(CorrectArgs),
    /// Show what numbers are, whose they are and what a part to them costs
    Lookup(LookupArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CorrectArgs {
    /// The CSV file, with or without a header line; - reads standard input
    pub(crate) file: PathBuf,
    /// The country whose numbers are written without its calling code
    #[arg(long, value_name = "CODE", value_parser = Country::parse)]
    pub(crate) country: Country,
    /// Where to write the rows with what was found out [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The column of the numbers, by its name or its place from 1 [default: number, phone, msisdn or to, else the first]
    #[arg(long, value_name = "NAME|INDEX")]
    pub(crate) column: Option<Column>,
    /// Print the summary as JSON on standard output; needs --output
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

/// Which column holds the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Column {
    /// The one with this name in the header line.
    Named(String),
    /// The one at this place, from 0.
    At(usize),
}

impl FromStr for Column {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let place = text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        Ok(place.map_or_else(|| Self::Named(text.to_owned()), Self::At))
    }
}

#[derive(Debug, Args)]
pub(crate) struct LookupArgs {
    /// The numbers
    #[arg(required = true, value_name = "NUMBER")]
    pub(crate) numbers: Vec<String>,
    /// The country whose numbers are written without its calling code
    #[arg(long, value_name = "CODE", value_parser = Country::parse)]
    pub(crate) country: Option<Country>,
    /// Show what this account pays [default: what everybody pays]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_a_place_or_a_name() {
        for (text, expected) in [
            ("1", Column::At(0)),
            ("12", Column::At(11)),
            ("phone", Column::Named("phone".to_owned())),
            ("0", Column::Named("0".to_owned())),
            ("-1", Column::Named("-1".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }
}
