//! `switchboard account …`

use clap::Subcommand;
use domain::Money;
use domain::billing::RuleChange;
use domain::note::{NotANote, Note};

use super::Output;

/// The help on what can be set.
const RULES: &str = "credit_limit=50.00, countries=LV,EE or all, daily_cap=20.00 or off, \
                     per_recipient_hour=10 or off, approved_senders_only=true or false, requests_per_second=25 or 0 for no limit, \
                     admins_consent_only=true or false";

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account
    Create {
        /// Its name, unique
        #[arg(long)]
        name: String,
        /// What it starts with, such as 100.00
        #[arg(long, default_value = "0")]
        balance: Money,
        #[command(flatten)]
        output: Output,
    },
    /// List the accounts
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Add money to an account, or take some off with a negative amount
    Credit {
        /// Its name
        name: String,
        /// How much, such as 100.00 or -5.00
        #[arg(allow_negative_numbers = true)]
        amount: Money,
        /// What to remember about it, in the ledger
        #[arg(long, value_name = "TEXT", value_parser = parse_note)]
        note: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Set what an account may spend, and under what it may send; everything that is given, or nothing
    Set {
        /// Its name
        name: String,
        /// What to set
        #[arg(required = true, value_name = "KEY=VALUE", help = RULES)]
        changes: Vec<RuleChange>,
        #[command(flatten)]
        output: Output,
    },
    /// Show the newest entries of an account's ledger
    Ledger {
        /// Its name
        name: String,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Verify that every account's ledger gives its balance
    Check {
        #[command(flatten)]
        output: Output,
    },
    /// Make a new secret for the signatures of an account's callbacks
    RotateSecret {
        /// Its name
        name: String,
        /// How long callbacks are signed with the former secret, too; 0 when it has leaked
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u16).range(0..=720))]
        overlap_hours: u16,
        #[command(flatten)]
        output: Output,
    },
    /// Suspend an account: its tokens are refused
    Suspend {
        /// Its name
        name: String,
    },
    /// Let a suspended account go on
    Resume {
        /// Its name
        name: String,
    },
}

pub(super) fn parse_note(text: &str) -> Result<String, NotANote> {
    text.parse::<Note>().map(|note| note.as_str().to_owned())
}
