//! `switchboard migrate`, `switchboard backup`, `switchboard restore`

use std::path::PathBuf;

use clap::Args;

use super::Output;

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The database to move from: sqlite:FILE or postgres://… [default: the configured one]
    #[arg(long, value_name = "URL", required_unless_present = "to")]
    pub(crate) from: Option<String>,
    /// The database to move to, which must be empty [default: the configured one]
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Undo a move: open the source again, and close the target
    #[arg(long)]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup file
    #[arg(long, value_name = "FILE")]
    pub(crate) from: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}
