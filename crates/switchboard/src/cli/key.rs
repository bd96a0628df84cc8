//! `switchboard key …`

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Encrypt everything again with the newest key; every node must have it by then
    Rotate {
        #[command(flatten)]
        output: Output,
    },
}
