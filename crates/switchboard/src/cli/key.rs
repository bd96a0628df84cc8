//! `switchboard key …`

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Encrypt all secrets again with the newest key; every node must have that key before
    Rotate {
        #[command(flatten)]
        output: Output,
    },
}
