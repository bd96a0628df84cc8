//! `switchboard audit`

use clap::Args;

use super::Output;

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// What was done to or in this account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// What this person did: an email address
    #[arg(long, value_name = "EMAIL")]
    pub(crate) who: Option<String>,
    /// This action, or those that begin so, such as token.create or token
    #[arg(long)]
    pub(crate) action: Option<String>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}
