//! `switchboard numbers …`

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use domain::Country;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum NumbersCommand {
    /// Correct every number in a CSV file
    Correct(CorrectArgs),
    /// Show the type, country and mobile operator of numbers, and the price of a part
    Lookup(LookupArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CorrectArgs {
    /// The CSV file, with or without a header line; - reads standard input
    pub(crate) file: PathBuf,
    /// The country of numbers without a calling code, such as LV
    #[arg(long, value_name = "CODE", value_parser = Country::parse)]
    pub(crate) country: Country,
    /// The file for the rows with the added columns [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The column with the numbers, by name or by position from 1 [default: number, phone, msisdn or to, else the
    /// first]
    #[arg(long, value_name = "NAME|INDEX")]
    pub(crate) column: Option<Column>,
    /// Print the summary as JSON on standard output; needs --output
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

/// The column with the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Column {
    /// By its name in the header line.
    Named(String),
    /// By its index, from 0.
    At(usize),
}

impl FromStr for Column {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let index = text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        Ok(index.map_or_else(|| Self::Named(text.to_owned()), Self::At))
    }
}

#[derive(Debug, Args)]
pub(crate) struct LookupArgs {
    /// The phone numbers
    #[arg(required = true, value_name = "NUMBER")]
    pub(crate) numbers: Vec<String>,
    /// The country of numbers without a calling code, such as LV
    #[arg(long, value_name = "CODE", value_parser = Country::parse)]
    pub(crate) country: Option<Country>,
    /// Show the prices of this account [default: the general price list]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_a_position_or_a_name() {
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
