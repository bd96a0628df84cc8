//! `switchboard carrier …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum PresetCommand {
    /// List the presets
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Print the description of a provider, to be read, copied and changed
    Show {
        /// The name of the preset
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CarrierCommand {
    /// List the carriers and their state, as the running nodes see them
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Descriptions of providers that come with the program
    #[command(subcommand)]
    Preset(PresetCommand),
    /// Send one message by one carrier and follow it to its report
    Test(CarrierTest),
    /// Add a carrier to the database, or change one there
    Set(CarrierSet),
    /// Remove a carrier from the database
    Remove {
        /// The name of the carrier
        name: String,
    },
    /// Print the settings of a carrier, without its secrets
    Show {
        /// The name of the carrier
        name: String,
    },
    /// List the changes of the carriers and routes in the database, the newest first
    History {
        #[command(flatten)]
        output: Output,
    },
    /// Undo the last change of the carriers and routes in the database
    Undo {
        /// Restore this version instead of the one before the last
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        to: Option<u32>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CarrierSet {
    /// The name of the carrier
    pub(crate) name: String,
    /// Settings with the keys of a `[[carrier]]`: kind=smpp, request.url=https://…; a secret may be `env:NAME` or
    /// `file:PATH`, which is read now
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Replace all settings by those of this file in the format of the configuration; - reads the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Remove a setting
    #[arg(long, value_name = "KEY")]
    pub(crate) unset: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RouteCommand {
    /// List the routes in the order in which they are tried
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Add a route to the database, or replace one there; such routes come before those of the configuration
    Set(RouteSet),
    /// Remove a route from the database
    Remove {
        /// The name of the route
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RouteSet {
    /// The name of the route
    pub(crate) name: String,
    /// Settings with the keys of a `[[route]]`, lists separated by commas: carriers=alpha,beta country=LV
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub(crate) settings: Vec<String>,
    /// Put it before this route
    #[arg(long, value_name = "NAME")]
    pub(crate) before: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CarrierTest {
    /// The name of the carrier
    pub(crate) name: String,
    /// The number to send to
    #[arg(long, value_name = "N", value_parser = domain::Msisdn::parse)]
    pub(crate) to: domain::Msisdn,
    /// The sender [default: `senders.pin_from`]
    #[arg(long, value_name = "F")]
    pub(crate) from: Option<String>,
    /// The text
    #[arg(long, value_name = "T")]
    pub(crate) text: Option<String>,
}
