//! The identity of a caller, and the networks that a token may be used from.

pub mod attempts;
pub mod permission;
mod senders;
pub mod token;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use jiff::Timestamp;

use crate::access::permission::Permissions;
use crate::billing::{Countries, GrantCap};
use crate::ids::AccountId;
use crate::number::country::Country;
use crate::quoted::Quoted;

pub use senders::AllowedSenders;

/// A caller that acts for an account, by a token or as a person in the dashboard, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The token's name, or the person's email address.
    pub name: String,
    pub account: AccountId,
    pub account_name: String,
    /// Tokens of a suspended account are recognised, but refused.
    pub suspended: bool,
    /// The countries that the account may send to.
    pub countries: Countries,
    /// Whether the account may use only approved sender IDs of its own.
    pub approved_senders_only: bool,
    /// Per node; 0 for no limit.
    pub requests_per_second: u32,
    pub permissions: Permissions,
    pub allow: AllowList,
    pub expires: Option<Timestamp>,
    /// What the client that this token was issued to may spend.
    pub grant_cap: Option<GrantCap>,
    /// Limits of this caller besides those of the account.
    pub limits: AccessLimits,
}

/// Limits of one caller besides those of its account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessLimits {
    pub senders: AllowedSenders,
    pub countries: Countries,
}

impl Access {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether the account and this caller may send to a country.
    pub fn allows_country(&self, country: Option<Country>) -> bool {
        self.countries.allows(country) && self.limits.countries.allows(country)
    }

    /// Whether [`Self::allows_country`] allows every destination.
    pub fn allows_all_countries(&self) -> bool {
        let lists = [&self.countries, &self.limits.countries];
        lists.iter().all(|list| list.as_slice().is_empty())
    }
}

/// The name of an account: 1 to 64 characters, no control characters, no white space at the ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not an account name; give 1 to 64 characters without spaces at the ends", Quoted(.0))]
pub struct NotAnAccountName(String);

impl AccountName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AccountName {
    type Err = NotAnAccountName;

    fn from_str(text: &str) -> Result<Self, NotAnAccountName> {
        let fits = (1..=64).contains(&text.chars().count());
        if fits && text.trim() == text && !text.chars().any(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnAccountName(text.to_owned()))
        }
    }
}

/// The networks that a token may be used from. An empty list allows every address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList(Vec<IpNet>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not an address or network; write it like 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32", Quoted(.0))]
pub struct NotANetwork(String);

/// Parses an address or a network. An IPv4 network mapped into IPv6 becomes the IPv4 network.
pub fn parse_network(text: &str) -> Result<IpNet, NotANetwork> {
    let network = text
        .parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network
        .map(|net| unmap(net).trunc())
        .map_err(|_| NotANetwork(text.to_owned()))
}

/// Whether one of the networks contains the address. A mapped IPv4 address counts as the IPv4 address.
pub fn any_contains(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|net| net.contains(&address))
}

fn unmap(net: IpNet) -> IpNet {
    const MAPPED_BITS: u8 = 96;
    let IpNet::V6(v6) = net else { return net };
    match (
        v6.addr().to_ipv4_mapped(),
        v6.prefix_len().checked_sub(MAPPED_BITS),
    ) {
        (Some(v4), Some(prefix)) => Ipv4Net::new(v4, prefix).map_or(net, IpNet::V4),
        _ => net,
    }
}

impl AllowList {
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks.into_iter().map(|net| unmap(net).trunc()).collect())
    }

    pub fn allows(&self, address: IpAddr) -> bool {
        self.0.is_empty() || any_contains(&self.0, address)
    }

    /// Whether it allows every address that the other list allows.
    pub fn covers(&self, other: &Self) -> bool {
        let is_within = |net: &IpNet| self.0.iter().any(|own| own.contains(net));
        self.0.is_empty() || (!other.0.is_empty() && other.0.iter().all(is_within))
    }

    pub fn networks(&self) -> &[IpNet] {
        &self.0
    }
}

/// The stored form: networks, separated by spaces.
impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&networks.join(" "))
    }
}

impl FromStr for AllowList {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        text.split_whitespace()
            .map(parse_network)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_match_networks_of_both_families_and_their_mapped_form() {
        for (list, address, allowed) in [
            ("", "203.0.113.9", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.0/24", "192.0.2.77", true),
            ("192.0.2.77/24", "192.0.2.1", true),
            ("192.0.2.0/24", "::ffff:192.0.2.77", true),
            ("::ffff:192.0.2.0/120", "192.0.2.77", true),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("2001:db8::/32 192.0.2.0/24", "192.0.2.5", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "192.0.2.1", false),
        ] {
            let parsed: AllowList = list.parse().expect(list);
            assert_eq!(
                parsed.allows(address.parse().expect(address)),
                allowed,
                "{list:?} {address}"
            );
            assert_eq!(
                parsed.to_string().parse(),
                Ok(parsed),
                "{list:?} round-trips"
            );
        }
    }

    #[test]
    fn invalid_networks_are_refused() {
        for text in [
            "x",
            "192.0.2.0/33",
            "192.0.2",
            "2001:db8::/129",
            "192.0.2.0/",
        ] {
            assert!(text.parse::<AllowList>().is_err(), "{text}");
        }
    }

    #[test]
    fn account_names_are_short_and_printable() {
        for (text, ok) in [
            ("acme", true),
            ("Acme Ltd", true),
            ("", false),
            (" acme", false),
            ("a\nb", false),
        ] {
            assert_eq!(text.parse::<AccountName>().is_ok(), ok, "{text:?}");
        }
        assert!("a".repeat(65).parse::<AccountName>().is_err());
    }
}
