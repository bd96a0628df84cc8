//! `switchboard smsc`

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct SmscArgs {
    /// The address and port to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2775")]
    pub(crate) listen: SocketAddr,
    /// Who may bind [default: anybody]
    #[arg(long, value_name = "NAME", requires = "password")]
    pub(crate) system_id: Option<String>,
    /// With which password
    #[arg(long, requires = "system_id")]
    pub(crate) password: Option<String>,
    /// Receipts come after so long
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 300)]
    pub(crate) delay_ms: u64,
    /// Refuse more than so many parts in a second as throttled
    #[arg(long, value_name = "PARTS")]
    pub(crate) max_per_second: Option<u32>,
    /// How message IDs are written
    #[arg(long, value_enum, default_value_t = IdsArg::Decimal)]
    pub(crate) ids: IdsArg,
    /// Do not print the messages that arrive
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// How message IDs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IdsArg {
    /// In decimal.
    Decimal,
    /// In hexadecimal.
    Hex,
    /// In hexadecimal in answers, in decimal in receipts.
    HexThenDecimal,
}
