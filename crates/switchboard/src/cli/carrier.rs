//! `switchboard carrier …`

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum CarrierCommand {
    /// List the carriers and their state, as the running nodes see them
    List {
        #[command(flatten)]
        output: Output,
    },
}
