//! `switchboard callbacks …`

use clap::{Args, Subcommand};
use domain::{CallbackId, Timestamp};

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum CallbacksCommand {
    /// List callbacks that are waiting or parked, the newest first
    List {
        #[command(flatten)]
        selector: CallbackSelector,
        /// Include callbacks that were received
        #[arg(long)]
        all: bool,
        /// The number of callbacks
        #[arg(long, default_value_t = 100)]
        limit: u32,
        #[command(flatten)]
        output: Output,
    },
    /// Show every attempt of a callback
    Show {
        /// The callback's ID, as `callbacks list` shows it
        id: CallbackId,
        #[command(flatten)]
        output: Output,
    },
    /// Send callbacks again now, selected by ID, URL or time
    Replay {
        #[command(flatten)]
        selector: CallbackSelector,
        /// Include callbacks that were received
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CallbackSelector {
    /// Only the callback with this ID
    #[arg(long)]
    pub(crate) id: Option<CallbackId>,
    /// Only callbacks to URLs that start with this text
    #[arg(long, value_name = "PREFIX")]
    pub(crate) url: Option<String>,
    /// Only callbacks created at this time or later, such as 2030-01-31T09:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Timestamp>,
    /// Only callbacks created before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Timestamp>,
}
