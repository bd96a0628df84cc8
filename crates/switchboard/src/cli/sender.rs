//! `switchboard sender …`

use clap::{Args, Subcommand};
use domain::SenderId;
use domain::sender::SenderState;

use super::Output;
use super::account::parse_note;

#[derive(Debug, Subcommand)]
pub(crate) enum SenderCommand {
    /// List the names and numbers that accounts have registered
    List {
        /// Only those of this account
        #[arg(long)]
        account: Option<String>,
        /// Only those in this state: pending, `awaiting_confirmation`, approved, rejected or revoked
        #[arg(long)]
        state: Option<SenderState>,
        #[command(flatten)]
        output: Output,
    },
    /// Let an account send under a name or number
    Approve(Decision),
    /// Turn a registration down
    Reject(Decision),
    /// Take an approval back
    Revoke(Decision),
}

#[derive(Debug, Args)]
pub(crate) struct Decision {
    /// Its ID, as `sender list` shows it
    pub(crate) id: SenderId,
    /// Why; the account is told
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}
