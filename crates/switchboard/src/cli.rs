//! The command line. People script it: what is here stays.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::{CallbackId, Money, Permission, Timestamp, TokenId};
use ipnet::IpNet;
use jiff::SignedDuration;

/// A messaging service that you run yourself.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Without a command the service starts, as with `serve`.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Where the configuration and the data are; on every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// The configuration file [default: switchboard.toml where it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder for the database of a service that has no other [default: ./data]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the service
    Serve(ServeArgs),
    /// Create, list, suspend and resume accounts
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// See what the simulated network does
    #[command(subcommand)]
    Simulator(SimulatorCommand),
    /// See which reports wait, and send them again
    #[command(subcommand)]
    Callbacks(CallbacksCommand),
    /// Receive callbacks on this machine: print them and answer OK
    Listen {
        /// The port on 127.0.0.1
        #[arg(long, default_value_t = 9000)]
        port: u16,
    },
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// The address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// The parts to start, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "ROLES")]
    pub(crate) roles: Option<Vec<Role>>,
}

/// A part of the service that a process may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// The REST API with its reference page.
    Api,
    /// The dashboard.
    Dashboard,
    /// Sending, receipts and callbacks.
    Worker,
}

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

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token; it is shown once
    Create(TokenArgs),
    /// List the live tokens
    List {
        /// Only those of this account
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Revoke a token; every node refuses it within a second
    Revoke {
        /// Its ID, as `token list` shows it
        id: TokenId,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The account that it acts for
    #[arg(long)]
    pub(crate) account: String,
    /// What people call it
    #[arg(long, default_value = "command line")]
    pub(crate) name: String,
    /// What it may do; repeat it for several [default: everything]
    #[arg(long = "permission", value_name = "PERMISSION")]
    pub(crate) permissions: Vec<Permission>,
    /// An address or network that it may be used from; repeat it for several [default: anywhere]
    #[arg(long = "allow-ip", value_name = "CIDR", value_parser = domain::access::parse_network)]
    pub(crate) allow_ips: Vec<IpNet>,
    /// How long it lives: 90s, 15m, 12h or 30d [default: until it is revoked]
    #[arg(long, value_parser = parse_lifetime)]
    pub(crate) expires: Option<SignedDuration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimulatorCommand {
    /// List the numbers that fail or behave on purpose
    Numbers {
        #[command(flatten)]
        output: Output,
    },
    /// Show what a simulated handset received, the newest first
    Inbox {
        /// Its number
        #[arg(long, value_parser = domain::Msisdn::parse)]
        number: domain::Msisdn,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CallbacksCommand {
    /// List callbacks that wait or are parked, the newest first
    List {
        #[command(flatten)]
        which: WhichCallbacks,
        /// With those that were received
        #[arg(long)]
        all: bool,
        /// At most so many
        #[arg(long, default_value_t = 100)]
        limit: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Show every try of a callback
    Show {
        /// Its ID
        id: CallbackId,
        #[command(flatten)]
        output: Output,
    },
    /// Send callbacks again, now: by ID, by address, by time
    Replay {
        #[command(flatten)]
        which: WhichCallbacks,
        /// Those that were received, too
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WhichCallbacks {
    /// This one
    #[arg(long)]
    pub(crate) id: Option<CallbackId>,
    /// Those whose address starts so
    #[arg(long, value_name = "PREFIX")]
    pub(crate) url: Option<String>,
    /// Those that came into being at this time or later, such as 2030-01-31T09:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Timestamp>,
    /// Those that came into being before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Timestamp>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Read the configuration, say what is wrong with it, and show what is in force
    Check,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Longer lifetimes than ten years are a token that does not expire.
const MAX_LIFETIME_S: i64 = 10 * 366 * 24 * 3600;

fn parse_lifetime(text: &str) -> Result<SignedDuration, String> {
    let rule = || {
        format!("'{text}' is no lifetime; write it like 90s, 15m, 12h or 30d, at most ten years")
    };
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        _ => return Err(rule()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| rule())?;
    let seconds = i64::from(number) * unit;
    if (1..=MAX_LIFETIME_S).contains(&seconds) {
        Ok(SignedDuration::from_secs(seconds))
    } else {
        Err(rule())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lifetimes_are_numbers_with_a_unit() {
        for (text, seconds) in [
            ("2s", Some(2)),
            ("15m", Some(900)),
            ("12h", Some(43_200)),
            ("30d", Some(2_592_000)),
            ("0s", None),
            ("5", None),
            ("d", None),
            ("-1d", None),
            ("1.5h", None),
            ("9999999d", None),
            ("", None),
            ("1ü", None),
        ] {
            assert_eq!(
                parse_lifetime(text).ok().map(|d| d.as_secs()),
                seconds,
                "{text:?}"
            );
        }
    }
}
