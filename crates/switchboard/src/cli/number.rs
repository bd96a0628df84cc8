//! `switchboard number …`

use clap::{Args, Subcommand};
use domain::inbound::number::{InboundNumber, InboundNumberError};

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum NumberCommand {
    /// Give an account a number that handsets can send to, or a keyword of a shared number
    Add(AddNumberArgs),
    /// List the numbers that accounts have
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Take a number, or a keyword of it, from its account
    Remove {
        #[command(flatten)]
        entry: EntryArgs,
    },
}

/// Which entry.
#[derive(Debug, Args)]
pub(crate) struct EntryArgs {
    /// A phone number with country code, or a short code of 3 to 8 digits
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pub(crate) number: InboundNumber,
    /// Only texts that begin with this word, in any case
    #[arg(long, value_name = "WORD")]
    pub(crate) keyword: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AddNumberArgs {
    #[command(flatten)]
    pub(crate) entry: EntryArgs,
    /// The account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: String,
    /// Where its messages are sent [default: `inbound_url` of the account]
    #[arg(long)]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

fn parse_number(value: &str) -> Result<InboundNumber, InboundNumberError> {
    InboundNumber::parse(value)
}
