//! `switchboard subject …`

use clap::{Args, Subcommand};
use domain::Country;

#[derive(Debug, Subcommand)]
pub(crate) enum SubjectCommand {
    /// Print everything that is stored about a number, as JSON: messages, lookups, inboxes, callbacks and sender IDs
    Export(SubjectNumber),
    /// Erase a number, its texts and the results of lookups from messages that have ended and from inboxes; prices and
    /// counts stay
    Erase {
        #[command(flatten)]
        subject: SubjectNumber,
        /// Erase it; without this, the command says what it would erase
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SubjectNumber {
    /// The number, with its country code or as it is written in --country
    pub(crate) number: String,
    /// The country by whose rules the number is corrected, such as LV
    #[arg(long, value_name = "CODE", value_parser = Country::parse)]
    pub(crate) country: Option<Country>,
}
