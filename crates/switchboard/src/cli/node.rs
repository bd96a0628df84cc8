//! `switchboard node …`

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the processes that serve this database: what they are, where, and what they hold
    List {
        #[command(flatten)]
        output: Output,
    },
}
