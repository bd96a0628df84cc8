//! `switchboard smpp-user …`

use clap::{Args, Subcommand};
use domain::smpp_user::{BindKind, ReceiptDate, ReceiptErrorField, ReceiptId, SystemId};
use domain::{Country, Originator};
use ipnet::IpNet;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum SmppUserCommand {
    /// Create an SMPP user; its password is shown once
    Create(Box<SmppUserArgs>),
    /// List the SMPP users that are not revoked
    List {
        /// Only users of this account
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Change options of an SMPP user; those that are not given stay as they are
    Set(Box<SmppUserSetArgs>),
    /// Revoke an SMPP user; every node ends its sessions within a second
    Revoke {
        /// The system ID, as `smpp-user list` shows it
        system_id: SystemId,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SmppUserArgs {
    /// The account that the user sends for
    #[arg(long)]
    pub(crate) account: String,
    /// The system ID: 1 to 15 ASCII characters, unique over the service [default: generated]
    #[arg(long)]
    pub(crate) system_id: Option<SystemId>,
    /// Generate a password of 16 characters instead of 8; only for clients that can send more than SMPP allows
    #[arg(long)]
    pub(crate) long_password: bool,
    /// The number of sessions at once, over all nodes; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = domain::smpp_user::DEFAULT_MAX_BINDS)]
    pub(crate) max_binds: u32,
    /// The number of messages, and of requests about messages, a second over all nodes; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_per_second: u32,
    /// A kind of bind that the user may open: transmitter, receiver or transceiver; repeat the option for several
    /// [default: all]
    #[arg(long = "allow-bind", value_name = "KIND")]
    pub(crate) allow_binds: Vec<BindKind>,
    /// An address or network that may bind; repeat the option for several [default: any]
    #[arg(long = "allow-ip", value_name = "CIDR", value_parser = domain::access::parse_network)]
    pub(crate) allow_ips: Vec<IpNet>,
    /// A sender that the user may send from; repeat the option for several [default: all that the account may use]
    #[arg(long = "allow-sender", value_name = "SENDER", value_parser = Originator::parse_approved)]
    pub(crate) allow_senders: Vec<Originator>,
    /// A country that the user may send to, such as LV; repeat the option for several [default: all that the account
    /// may send to]
    #[arg(long = "allow-country", value_name = "COUNTRY", value_parser = Country::parse)]
    pub(crate) allow_countries: Vec<Country>,
    /// How receipts write dates: minutes (`YYMMDDhhmm`) or seconds (`YYMMDDhhmmss`)
    #[arg(long, value_name = "FORMAT", default_value = "minutes")]
    pub(crate) receipt_date: ReceiptDate,
    /// How message IDs are written: decimal or hex
    #[arg(long, value_name = "FORMAT", default_value = "decimal")]
    pub(crate) receipt_id: ReceiptId,
    /// The field `err` of receipts: code (the code of the service) or zero (always 000)
    #[arg(long, value_name = "FORMAT", default_value = "code")]
    pub(crate) receipt_error: ReceiptErrorField,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct SmppUserSetArgs {
    /// The system ID, as `smpp-user list` shows it
    pub(crate) system_id: SystemId,
    /// The number of sessions at once, over all nodes; 0 for no limit
    #[arg(long, value_name = "N")]
    pub(crate) max_binds: Option<u32>,
    /// The number of messages, and of requests about messages, a second over all nodes; 0 for no limit
    #[arg(long, value_name = "N")]
    pub(crate) max_per_second: Option<u32>,
    /// A kind of bind that the user may open: transmitter, receiver or transceiver; repeat the option for several, or
    /// give any for all
    #[arg(long = "allow-bind", value_name = "KIND", value_parser = entry(str::parse::<BindKind>))]
    pub(crate) allow_binds: Vec<Entry<BindKind>>,
    /// An address or network that may bind; repeat the option for several, or give any for all
    #[arg(long = "allow-ip", value_name = "CIDR", value_parser = entry(domain::access::parse_network))]
    pub(crate) allow_ips: Vec<Entry<IpNet>>,
    /// A sender that the user may send from; repeat the option for several, or give any for all of the account
    #[arg(long = "allow-sender", value_name = "SENDER", value_parser = entry(Originator::parse_approved))]
    pub(crate) allow_senders: Vec<Entry<Originator>>,
    /// A country that the user may send to, such as LV; repeat the option for several, or give any for all of the
    /// account
    #[arg(long = "allow-country", value_name = "COUNTRY", value_parser = entry(Country::parse))]
    pub(crate) allow_countries: Vec<Entry<Country>>,
    /// How receipts write dates: minutes (`YYMMDDhhmm`) or seconds (`YYMMDDhhmmss`)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) receipt_date: Option<ReceiptDate>,
    /// How message IDs are written: decimal or hex
    #[arg(long, value_name = "FORMAT")]
    pub(crate) receipt_id: Option<ReceiptId>,
    /// The field `err` of receipts: code (the code of the service) or zero (always 000)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) receipt_error: Option<ReceiptErrorField>,
}

/// An entry of a list that may be cleared.
#[derive(Debug, Clone)]
pub(crate) enum Entry<T> {
    /// The word `any`: the list has no entries.
    Any,
    One(T),
}

fn entry<T, E>(
    parse: impl Fn(&str) -> Result<T, E> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<Entry<T>, E> + Clone + Send + Sync + 'static {
    move |text| match text {
        "any" => Ok(Entry::Any),
        text => parse(text).map(Entry::One),
    }
}
