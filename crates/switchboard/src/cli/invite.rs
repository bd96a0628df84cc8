//! `switchboard invite …`

use clap::{Args, Subcommand};
use domain::{Email, Role};

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum InviteCommand {
    /// Create a link by which a person sets a password and signs in; for an existing person, a link for a new password
    Create(InviteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InviteArgs {
    /// The email address that the person signs in with
    #[arg(long)]
    pub(crate) email: Email,
    /// The role: admin or member of an account, or operator, who runs the service [default: member]
    #[arg(long)]
    pub(crate) role: Option<Role>,
    /// The account of the person [default: the only account]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}
