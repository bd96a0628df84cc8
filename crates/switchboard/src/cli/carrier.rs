//! `switchboard carrier …`

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum CarrierCommand {
    /// List the carriers and how they do, as the running service sees them
    List {
        #[command(flatten)]
        output: Output,
    },
}
