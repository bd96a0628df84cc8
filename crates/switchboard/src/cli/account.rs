//! `switchboard account …`

use std::str::FromStr;

use clap::Subcommand;
use domain::billing::RuleChange;
use domain::inbound::language::Language;
use domain::inbound::words::Request;
use domain::message::text::measure;
use domain::note::{NotANote, Note};
use domain::{CallbackUrl, Money};
use engine::reading::statement::Month;

use super::{Output, ReportFormat};

/// The help of the values that `account set` takes.
const RULES: &str = "\
The rules to set:
  credit_limit=50.00          how far the balance may go below zero
  countries=LV,EE             the countries that the account may send to, or all
  daily_cap=20.00             the most that may be charged on one day (UTC), or off
  per_recipient_hour=10       the most messages to one recipient within an hour, or off
  approved_senders_only=true  whether the account may use only its approved sender IDs
  requests_per_second=25      the most requests in a second on each node, or 0 for no limit
  codes_per_day=500           the most confirmation codes in a day
  admins_consent_only=true    whether only admins may allow clients to act for the account
  texts_for=admin,member      the roles that see texts in the dashboard: operator, admin, member; or all, or none
  low_balance=10.00           notify below this balance; off for none
  ported_numbers=true         whether prices and routes go by the network that a number was ported to
  verify_price=0.02           what an approved verification costs, besides its message
  inbound_url=https://…       where messages to its numbers are sent; off for none
  stop_reply=TEXT             the reply to STOP; nothing for none, default for the service's own
  start_reply=TEXT            the reply to START
  help_reply=TEXT             the reply to HELP
  stop_reply.fr=TEXT          the reply to a French word for STOP; likewise for start_reply and help_reply, and for
                              de, el, en, es, it, lv, nl, pt and ru";

/// A setting of an account.
#[derive(Debug, Clone)]
pub(crate) enum AccountChange {
    Rule(RuleChange),
    /// Where messages to its numbers are sent.
    InboundUrl(Option<CallbackUrl>),
    Reply(ReplyChange),
}

/// The reply to a word such as STOP.
#[derive(Debug, Clone)]
pub(crate) struct ReplyChange {
    pub(crate) request: Request,
    /// `None` for all languages without a text of their own.
    pub(crate) language: Option<Language>,
    /// Empty for no reply; `None` for the service's own text.
    pub(crate) text: Option<String>,
}

impl ReplyChange {
    /// `None` if the key is not that of a reply.
    fn parse(key: &str, value: &str) -> Option<Result<Self, String>> {
        let (name, code) = match key.split_once('.') {
            Some((name, code)) => (name, Some(code)),
            None => (key, None),
        };
        let request = Request::ALL
            .into_iter()
            .find(|request| name.strip_suffix("_reply") == Some(request.name()))?;
        let language = match code.map(|code| (code, Language::from_code(code))) {
            None => None,
            Some((_, Some(language))) => Some(language),
            Some((code, None)) => {
                let known = Language::ALL.map(Language::code).join(", ");
                return Some(Err(format!(
                    "there are no words in the language '{code}'; there are in {known}"
                )));
            }
        };
        let text = (value != "default").then(|| value.to_owned());
        if let Some(text) = text.as_deref().filter(|text| !text.is_empty())
            && let Err(error) = measure(text)
        {
            return Some(Err(error.to_string()));
        }
        Some(Ok(Self {
            request,
            language,
            text,
        }))
    }

    /// The key, as it is given.
    pub(crate) fn key(&self) -> String {
        let name = self.request.name();
        match self.language {
            Some(language) => format!("{name}_reply.{}", language.code()),
            None => format!("{name}_reply"),
        }
    }
}

impl FromStr for AccountChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = |url| CallbackUrl::parse(url).map_err(|error| error.to_string());
        let pair = text.split_once('=');
        if let Some(reply) = pair.and_then(|(key, value)| ReplyChange::parse(key, value)) {
            return reply.map(Self::Reply);
        }
        match pair {
            Some(("inbound_url", "off")) => Ok(Self::InboundUrl(None)),
            Some(("inbound_url", value)) => Ok(Self::InboundUrl(Some(url(value)?))),
            _ => text.parse().map(Self::Rule),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account
    Create {
        /// The name; it must be unique
        #[arg(long)]
        name: String,
        /// The initial balance, such as 100.00
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
        /// The account's name
        name: String,
        /// The amount, such as 100.00 or -5.00
        #[arg(allow_negative_numbers = true)]
        amount: Money,
        /// A note for the ledger
        #[arg(long, value_name = "TEXT", value_parser = parse_note)]
        note: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Set the rules of an account; either all given rules are set or none
    Set {
        /// The account's name
        name: String,
        #[arg(required = true, value_name = "KEY=VALUE", help = RULES)]
        changes: Vec<AccountChange>,
        #[command(flatten)]
        output: Output,
    },
    /// Show the newest entries of an account's ledger
    Ledger {
        /// The account's name
        name: String,
        /// The number of entries
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Check that the ledger of every account matches its balance
    Check {
        #[command(flatten)]
        output: Output,
    },
    /// Print the statement of a month: balances, credits, charges, refunds, and messages by channel and network
    Statement {
        /// The account's name
        name: String,
        /// The month (UTC), such as 2026-11; the running month counts up to now
        #[arg(long)]
        month: Month,
        /// The format
        #[arg(long, value_enum, default_value_t = ReportFormat::Csv)]
        format: ReportFormat,
    },
    /// Create a new secret for the signatures of an account's callbacks
    RotateSecret {
        /// The account's name
        name: String,
        /// How long callbacks are also signed with the former secret; 0 if it has leaked
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u16).range(0..=720))]
        overlap_hours: u16,
        #[command(flatten)]
        output: Output,
    },
    /// Suspend an account: its tokens are refused
    Suspend {
        /// The account's name
        name: String,
    },
    /// Resume a suspended account
    Resume {
        /// The account's name
        name: String,
    },
}

pub(super) fn parse_note(text: &str) -> Result<String, NotANote> {
    text.parse::<Note>().map(|note| note.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use domain::billing::SpendingRules;

    use super::*;

    #[test]
    fn the_help_lists_every_rule() {
        for (key, _) in SpendingRules::default().in_words() {
            assert!(RULES.contains(&format!("  {key}=")), "{key} is missing");
        }
    }
}
