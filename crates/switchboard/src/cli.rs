//! The command line, one file a subject. People script it: what is here stays.

mod account;
mod audit;
mod callbacks;
mod carrier;
mod catalogues;
mod invite;
mod key;
mod node;
mod numbers;
mod sender;
mod smsc;
mod token;
mod transfer;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use account::AccountCommand;
pub(crate) use audit::AuditArgs;
pub(crate) use callbacks::{CallbacksCommand, WhichCallbacks};
pub(crate) use carrier::CarrierCommand;
pub(crate) use catalogues::{
    ListFormat, RatesCommand, RatesExport, RatesImport, ReferenceCommand, ReferenceImport,
    WhichList,
};
pub(crate) use invite::{InviteArgs, InviteCommand};
pub(crate) use key::KeyCommand;
pub(crate) use node::NodeCommand;
pub(crate) use numbers::{Column, CorrectArgs, LookupArgs, NumbersCommand};
pub(crate) use sender::{Decision, SenderCommand};
pub(crate) use smsc::{IdsArg, SmscArgs};
pub(crate) use token::{TokenArgs, TokenCommand};
pub(crate) use transfer::{BackupArgs, MigrateArgs, RestoreArgs};

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
    /// Create, list, credit, limit, suspend and resume accounts; look at their ledgers
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Invite people to the dashboard
    #[command(subcommand)]
    Invite(InviteCommand),
    /// List and review the names and numbers that accounts send under
    #[command(subcommand)]
    Sender(SenderCommand),
    /// Import and export price lists
    #[command(subcommand)]
    Rates(RatesCommand),
    /// Import and export operators, networks and prefixes
    #[command(subcommand)]
    Reference(ReferenceCommand),
    /// Correct phone numbers, and see what they belong to
    #[command(subcommand)]
    Numbers(NumbersCommand),
    /// See what the simulated network does
    #[command(subcommand)]
    Simulator(SimulatorCommand),
    /// See which reports wait, and send them again
    #[command(subcommand)]
    Callbacks(CallbacksCommand),
    /// See how the ways to the networks do
    #[command(subcommand)]
    Carrier(CarrierCommand),
    /// See the processes of this service, and what they hold
    #[command(subcommand)]
    Node(NodeCommand),
    /// The simulated network as an SMSC: try SMPP on one machine
    Smsc(SmscArgs),
    /// Receive callbacks on this machine: print them and answer OK
    Listen {
        /// The port on 127.0.0.1
        #[arg(long, default_value_t = 9000)]
        port: u16,
    },
    /// See who changed what, and from where
    Audit(AuditArgs),
    /// Move everything from one database to another, such as from SQLite to PostgreSQL
    Migrate(MigrateArgs),
    /// Write the database into one file, while the service runs
    Backup(BackupArgs),
    /// Put a backup into the configured database, which must be empty
    Restore(RestoreArgs),
    /// Rotate the key that encrypts secrets in the database
    #[command(subcommand)]
    Key(KeyCommand),
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
    /// The authorization server for AI clients.
    Auth,
    /// The MCP server, for AI clients.
    Mcp,
    /// The dashboard.
    Dashboard,
    /// Sending, receipts and callbacks.
    Worker,
}

impl Role {
    /// Every part, which is what runs when none is named.
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// What it is called on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
