//! The command line, one file per command. People use it in scripts, so options and commands must stay.

mod account;
mod audit;
mod callbacks;
mod carrier;
mod catalogues;
mod export;
mod invite;
mod key;
mod node;
mod number;
mod numbers;
mod opt_out;
mod sender;
mod smpp_user;
mod smsc;
mod subject;
mod token;
mod transfer;
mod verify;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use account::{AccountChange, AccountCommand, ReplyChange};
pub(crate) use audit::AuditArgs;
pub(crate) use callbacks::{CallbackSelector, CallbacksCommand};
pub(crate) use carrier::{
    CarrierCommand, CarrierSet, CarrierTest, PresetCommand, RouteCommand, RouteSet,
};
pub(crate) use catalogues::{
    ListFormat, PriceListSelector, RatesCommand, RatesExport, RatesImport, ReferenceCommand,
    ReferenceImport,
};
pub(crate) use export::{
    ExportCommand, ExportMargin, ExportMessages, Period, ReportFormat, RowFormat,
};
pub(crate) use invite::{InviteArgs, InviteCommand};
pub(crate) use key::KeyCommand;
pub(crate) use node::NodeCommand;
pub(crate) use number::{AddNumberArgs, EntryArgs, NumberCommand};
pub(crate) use numbers::{Column, CorrectArgs, LookupArgs, NumbersCommand};
pub(crate) use opt_out::{BlockCommand, BlockValue, OptOutArgs, OptOutCommand};
pub(crate) use sender::{Decision, SenderCommand};
pub(crate) use smpp_user::{Entry, SmppUserArgs, SmppUserCommand, SmppUserSetArgs};
pub(crate) use smsc::{IdFormat, SmscArgs};
pub(crate) use subject::{SubjectCommand, SubjectNumber};
pub(crate) use token::{TokenArgs, TokenCommand};
pub(crate) use transfer::{BackupArgs, MigrateArgs, RestoreArgs};
pub(crate) use verify::VerifyCommand;

/// A messaging service that you run yourself.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) paths: ConfigPaths,
    /// Without a command the service starts, as with `serve`.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The paths of the configuration and the data; every command has these options.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigPaths {
    /// The configuration file [default: switchboard.toml or /etc/switchboard/switchboard.toml, if one exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder for the key file and, unless another database is configured, the SQLite database [default: ./data]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the service
    Serve(ServeArgs),
    /// Create, list, credit, limit, suspend and resume accounts; show their ledgers and statements
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Create, list and revoke SMPP users: what customers bind with
    #[command(subcommand)]
    SmppUser(SmppUserCommand),
    /// Invite people to the dashboard
    #[command(subcommand)]
    Invite(InviteCommand),
    /// List and review sender IDs: the names and numbers that accounts send under
    #[command(subcommand)]
    Sender(SenderCommand),
    /// Give accounts numbers that handsets can send to
    #[command(subcommand)]
    Number(NumberCommand),
    /// List, add, remove and import the recipients that accounts must not write to
    #[command(subcommand)]
    OptOut(OptOutCommand),
    /// Show how many one-time codes are entered
    #[command(subcommand)]
    Verify(VerifyCommand),
    /// Block recipients, senders and words for all accounts
    #[command(subcommand)]
    Block(BlockCommand),
    /// Import and export price lists
    #[command(subcommand)]
    Rates(RatesCommand),
    /// Import and export mobile operators, networks and prefixes
    #[command(subcommand)]
    Reference(ReferenceCommand),
    /// Correct phone numbers, and show their country, mobile operator and price
    #[command(subcommand)]
    Numbers(NumbersCommand),
    /// Show the special numbers and the inboxes of the simulated network, and send texts from its handsets
    #[command(subcommand)]
    Simulator(SimulatorCommand),
    /// List callbacks, show their attempts, and send them again
    #[command(subcommand)]
    Callbacks(CallbacksCommand),
    /// Show the state of the carriers; add, change and remove carriers in the database
    #[command(subcommand)]
    Carrier(CarrierCommand),
    /// List the routes; add, change and remove routes in the database
    #[command(subcommand)]
    Route(RouteCommand),
    /// Show the nodes of this service and what they hold
    #[command(subcommand)]
    Node(NodeCommand),
    /// Run the simulated network as an SMSC, to try SMPP on one machine
    Smsc(SmscArgs),
    /// Receive callbacks on this machine: print them and answer OK
    Listen {
        /// The port on 127.0.0.1
        #[arg(long, default_value_t = 9000)]
        port: u16,
    },
    /// Show the audit log: who changed what, and from where
    Audit(AuditArgs),
    /// Export messages, or what they earned
    #[command(subcommand)]
    Export(ExportCommand),
    /// Export or erase everything that is stored about one phone number
    #[command(subcommand)]
    Subject(SubjectCommand),
    /// Move all data from one database to another, such as from SQLite to PostgreSQL
    Migrate(MigrateArgs),
    /// Write the database to a single file while the service runs
    Backup(BackupArgs),
    /// Load a backup into the configured database, which must be empty
    Restore(RestoreArgs),
    /// Rotate the key that encrypts secrets in the database
    #[command(subcommand)]
    Key(KeyCommand),
    /// Check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Ask the service on this machine whether it is ready
    Health {
        /// The address that the service listens on [default: that of the configuration]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
    },
    /// Write the man pages and the shell completions, for packages
    #[command(hide = true)]
    Generate {
        /// The folder for `man` and `completions`
        folder: PathBuf,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// The address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// The roles to run, separated by commas [default: all]
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
    /// SMPP for customers, if it is configured; needs the worker.
    Smpp,
}

impl Role {
    /// All roles; the default.
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimulatorCommand {
    /// List the numbers with a special outcome, such as a failure
    Numbers {
        #[command(flatten)]
        output: Output,
    },
    /// Send a text from a simulated handset to a number of an account
    Reply {
        /// The number of the handset
        #[arg(long, value_name = "N", value_parser = domain::Msisdn::parse)]
        from: domain::Msisdn,
        /// The number that it is sent to
        #[arg(long, value_name = "N", value_parser = domain::inbound::number::InboundNumber::parse)]
        to: domain::inbound::number::InboundNumber,
        /// The text
        #[arg(long)]
        text: String,
        #[command(flatten)]
        output: Output,
    },
    /// Show the messages on a simulated handset, the newest first
    Inbox {
        /// The number of the handset
        #[arg(long, value_parser = domain::Msisdn::parse)]
        number: domain::Msisdn,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration and print the values in effect
    Check {
        /// Also connect to each carrier with its settings; nothing is sent
        #[arg(long)]
        connect: bool,
    },
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
