//! `switchboard carrier …`

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
