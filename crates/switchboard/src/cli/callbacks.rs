//! `switchboard callbacks …`

use clap::{Args, Subcommand};
use domain::{CallbackId, Timestamp};

use super::Output;

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
