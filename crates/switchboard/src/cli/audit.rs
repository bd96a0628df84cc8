//! `switchboard audit`

use clap::Args;

use super::Output;

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Only changes of this account, or of something in it
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Only changes by this person, given by email address
    #[arg(long, value_name = "EMAIL")]
    pub(crate) who: Option<String>,
    /// Only this action, or actions that start with it, such as token.create or token
    #[arg(long)]
    pub(crate) action: Option<String>,
    /// The number of entries, the newest first
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}
