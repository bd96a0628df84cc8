//! `switchboard rates …` and `switchboard reference …`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use domain::Channel;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum RatesCommand {
    /// Replace the price list, or what differs for one account
    Import(RatesImport),
    /// List the versions, the newest first
    History {
        #[command(flatten)]
        which: WhichList,
        #[command(flatten)]
        output: Output,
    },
    /// Print a list so that it can be edited and imported
    Export(RatesExport),
}

#[derive(Debug, Args)]
pub(crate) struct RatesImport {
    /// The list, laid out as /rates/ answers it; - reads standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) which: WhichList,
    /// How the file is written [default: by the end of its name]
    #[arg(long)]
    pub(crate) format: Option<ListFormat>,
    /// Check the list and show what it would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct RatesExport {
    #[command(flatten)]
    pub(crate) which: WhichList,
    /// A former version, as `rates history` shows them [default: what is in force]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) version: Option<u32>,
    /// How to write it [default: by the end of the file's name, else csv]
    #[arg(long)]
    pub(crate) format: Option<ListFormat>,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Which of the price lists.
#[derive(Debug, Args)]
pub(crate) struct WhichList {
    /// Only what differs for this account; a list of only a header takes that away again [default: everybody's list]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// What is priced: sms, viber or hlr
    #[arg(long, default_value_t)]
    pub(crate) channel: Channel,
}

/// The form of a price list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// With a header line.
    Csv,
    /// An array of objects.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReferenceCommand {
    /// Replace operators, networks, prefixes or areas
    Import(ReferenceImport),
    /// List the versions, the newest first
    History {
        #[command(flatten)]
        output: Output,
    },
    /// Write the files that are in force, so that they can be edited and imported
    Export {
        /// Where to; it is created where there is none
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ReferenceImport {
    /// Holds operators.csv, networks.csv, prefixes.csv, areas.csv; what is missing stays as it is
    pub(crate) folder: PathBuf,
    /// Check the files and show what they would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Import even when more than a tenth of the rows of a file would vanish
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}
