//! `switchboard verify …`

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum VerifyCommand {
    /// Show how many one-time codes of the last day were entered, by the first digits of the numbers and by account
    Prefixes {
        #[command(flatten)]
        output: Output,
    },
}
