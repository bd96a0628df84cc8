//! `switchboard invite …`

use clap::{Args, Subcommand};
use domain::{Email, Role};

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum InviteCommand {
    /// Make a link by which somebody sets a password and signs in; for who can sign in already, a new password
    Create(InviteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InviteArgs {
    /// Who: what they will sign in with
    #[arg(long)]
    pub(crate) email: Email,
    /// What they may do: admin or member of an account; operator: who runs the service [default: member]
    #[arg(long)]
    pub(crate) role: Option<Role>,
    /// The account that they will see [default: the only one there is]
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}
