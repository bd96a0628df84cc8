//! `switchboard smsc`

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct SmscArgs {
    /// The address and port to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2775")]
    pub(crate) listen: SocketAddr,
    /// The only system ID that may bind [default: any]
    #[arg(long, value_name = "NAME", requires = "password")]
    pub(crate) system_id: Option<String>,
    /// The password for the system ID
    #[arg(long, requires = "system_id")]
    pub(crate) password: Option<String>,
    /// The delay of receipts
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 300)]
    pub(crate) delay_ms: u64,
    /// Refuse parts above this rate as throttled [default: no limit]
    #[arg(long, value_name = "PARTS")]
    pub(crate) max_per_second: Option<u32>,
    /// The format of message IDs
    #[arg(long, value_enum, default_value_t = IdFormat::Decimal)]
    pub(crate) ids: IdFormat,
    /// Do not print the messages that arrive
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IdFormat {
    /// Decimal.
    Decimal,
    /// Hexadecimal.
    Hex,
    /// Hexadecimal in responses, decimal in receipts.
    HexThenDecimal,
}
