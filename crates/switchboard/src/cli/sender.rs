//! `switchboard sender …`

use clap::{Args, Subcommand};
use domain::SenderId;
use domain::sender::SenderState;

use super::Output;
use super::account::parse_note;

#[derive(Debug, Subcommand)]
pub(crate) enum SenderCommand {
    /// List the sender IDs that accounts have registered
    List {
        /// Only sender IDs of this account
        #[arg(long)]
        account: Option<String>,
        /// Only sender IDs in this state: pending, `awaiting_confirmation`, approved, rejected or revoked
        #[arg(long)]
        state: Option<SenderState>,
        #[command(flatten)]
        output: Output,
    },
    /// Approve a sender ID, so that its account may use it
    Approve(Decision),
    /// Reject a sender ID that waits for its review
    Reject(Decision),
    /// Revoke the approval of a sender ID
    Revoke(Decision),
}

#[derive(Debug, Args)]
pub(crate) struct Decision {
    /// The ID, as `sender list` shows it
    pub(crate) id: SenderId,
    /// The reason, which the account can read
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}
