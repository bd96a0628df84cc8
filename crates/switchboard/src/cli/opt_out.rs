//! `switchboard opt-out …` and `switchboard block …`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::block::{BlockKind, BlockRule, BlockRuleError};
use domain::{Msisdn, Originator};

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum OptOutCommand {
    /// Put a recipient on an account's list, so that it gets no more messages
    Add(OptOutArgs),
    /// Take a recipient off an account's list
    Remove(OptOutArgs),
    /// List the recipients that an account must not write to
    List {
        /// The account
        #[arg(long)]
        account: String,
        #[command(flatten)]
        output: Output,
    },
    /// Add the recipients of a CSV file with the header `number,sender`; leave the sender empty for all senders
    Import {
        /// The file; `-` reads standard input
        file: PathBuf,
        /// The account
        #[arg(long)]
        account: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct OptOutArgs {
    /// The recipient
    #[arg(value_parser = Msisdn::parse)]
    pub(crate) number: Msisdn,
    /// The account
    #[arg(long)]
    pub(crate) account: String,
    /// Only for this sender [default: all senders of the account]
    #[arg(long, value_parser = Originator::parse_approved)]
    pub(crate) sender: Option<Originator>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlockCommand {
    /// Block messages by recipient, sender or text, for all accounts
    Add(BlockArgs),
    /// Remove something from the block list
    Remove(BlockArgs),
    /// Show the block list
    List {
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BlockArgs {
    #[command(flatten)]
    pub(crate) rule: BlockValue,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct BlockValue {
    /// A recipient
    #[arg(long)]
    number: Option<String>,
    /// The first digits of recipients, with the country code
    #[arg(long)]
    prefix: Option<String>,
    /// An originator, in any case
    #[arg(long)]
    sender: Option<String>,
    /// A word of the text; case and accents do not matter
    #[arg(long)]
    word: Option<String>,
}

impl BlockValue {
    /// The rule; the command line has exactly one of the options.
    pub(crate) fn rule(&self) -> Result<Option<BlockRule>, BlockRuleError> {
        let values = [
            (BlockKind::Number, &self.number),
            (BlockKind::Prefix, &self.prefix),
            (BlockKind::Sender, &self.sender),
            (BlockKind::Word, &self.word),
        ];
        let given = values
            .into_iter()
            .find_map(|(kind, value)| Some((kind, value.as_ref()?)));
        let rule = given.map(|(kind, value)| BlockRule::parse(kind, value));
        rule.transpose()
    }
}
