//! `switchboard token …`

use clap::{Args, Subcommand};
use domain::{Permission, TokenId};
use ipnet::IpNet;
use jiff::SignedDuration;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token; it is shown once
    Create(TokenArgs),
    /// List the tokens that are not revoked
    List {
        /// Only tokens of this account
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Revoke a token; every node refuses it within a second
    Revoke {
        /// The ID, as `token list` shows it
        id: TokenId,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The account that the token acts for
    #[arg(long)]
    pub(crate) account: String,
    /// A name for the token, shown in lists
    #[arg(long, default_value = "command line")]
    pub(crate) name: String,
    /// A permission of the token; repeat the option for several [default: all]
    #[arg(long = "permission", value_name = "PERMISSION")]
    pub(crate) permissions: Vec<Permission>,
    /// An address or network that may use the token; repeat the option for several [default: any]
    #[arg(long = "allow-ip", value_name = "CIDR", value_parser = domain::access::parse_network)]
    pub(crate) allow_ips: Vec<IpNet>,
    /// The lifetime: 90s, 15m, 12h or 30d [default: until it is revoked]
    #[arg(long, value_parser = parse_lifetime)]
    pub(crate) expires: Option<SignedDuration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A longer lifetime is as good as none.
const MAX_LIFETIME_S: i64 = 10 * 366 * 24 * 3600;

fn parse_lifetime(text: &str) -> Result<SignedDuration, String> {
    let rule = || {
        format!("'{text}' is not a lifetime; write it like 90s, 15m, 12h or 30d, at most ten years")
    };
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        _ => return Err(rule()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| rule())?;
    let seconds = i64::from(number) * unit;
    if (1..=MAX_LIFETIME_S).contains(&seconds) {
        Ok(SignedDuration::from_secs(seconds))
    } else {
        Err(rule())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_numbers_with_a_unit() {
        for (text, seconds) in [
            ("2s", Some(2)),
            ("15m", Some(900)),
            ("12h", Some(43_200)),
            ("30d", Some(2_592_000)),
            ("0s", None),
            ("5", None),
            ("d", None),
            ("-1d", None),
            ("1.5h", None),
            ("9999999d", None),
            ("", None),
            ("1ü", None),
        ] {
            assert_eq!(
                parse_lifetime(text).ok().map(|d| d.as_secs()),
                seconds,
                "{text:?}"
            );
        }
    }
}
