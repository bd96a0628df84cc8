//! `switchboard rates …` and `switchboard reference …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use domain::billing::Priced;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum RatesCommand {
    /// Replace the price list, or the prices of one account
    Import(RatesImport),
    /// List the imported versions, the newest first
    History {
        #[command(flatten)]
        selector: PriceListSelector,
        #[command(flatten)]
        output: Output,
    },
    /// Write a price list in the format that `rates import` reads
    Export(RatesExport),
}

#[derive(Debug, Args)]
pub(crate) struct RatesImport {
    /// The price list, with the columns that /rates/ returns; - reads standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) selector: PriceListSelector,
    /// The format of the file [default: by its extension]
    #[arg(long)]
    pub(crate) format: Option<ListFormat>,
    /// Check the list and show what would change, without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct RatesExport {
    #[command(flatten)]
    pub(crate) selector: PriceListSelector,
    /// A former version, as `rates history` lists them [default: the version in effect]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) version: Option<u32>,
    /// The format to write [default: by the extension of the file, else csv]
    #[arg(long)]
    pub(crate) format: Option<ListFormat>,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PriceListSelector {
    /// Only the prices of this account that differ from the general price list; importing only a header removes them
    /// [default: the general price list]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// The channel of the prices: sms, viber, hlr, or inbound for messages from handsets, by the network of the handset
    #[arg(long, default_value_t)]
    pub(crate) channel: Priced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// CSV with a header line.
    Csv,
    /// JSON: an array of objects.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReferenceCommand {
    /// Replace mobile operators, networks, prefixes or areas
    Import(ReferenceImport),
    /// List the imported versions, the newest first
    History {
        #[command(flatten)]
        output: Output,
    },
    /// Write the files in effect, in the format that `reference import` reads
    Export {
        /// The folder to write to; it is created if necessary
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ReferenceImport {
    /// The folder with operators.csv, networks.csv, prefixes.csv and areas.csv; missing files are not changed
    pub(crate) folder: PathBuf,
    /// Check the files and show what would change, without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Import even if more than a tenth of the rows of a file would be removed
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}
