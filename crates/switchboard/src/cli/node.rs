//! `switchboard node …`

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the nodes that use this database: their roles, version, host and the messages that they hold
    List {
        #[command(flatten)]
        output: Output,
    },
}
