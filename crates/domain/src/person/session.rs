//! Sessions: signed-in browsers.

use std::fmt::Write as _;
use std::net::IpAddr;

use jiff::Timestamp;

use super::SignedIn;
use crate::access::token::TokenHash;

/// How many bytes of the hash name a session on a page.
const NAME_BYTES: usize = 8;

/// The browser that somebody signs in with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Device {
    pub address: Option<IpAddr>,
    /// A short description, from its user agent.
    pub browser: String,
}

/// A session, as its person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The hash of the session's secret.
    pub hash: TokenHash,
    pub opened_at: Timestamp,
    /// Accurate to a few minutes.
    pub seen_at: Timestamp,
    pub expires: Timestamp,
    pub device: Device,
}

impl SessionRecord {
    /// The name on pages: enough of the hash to tell a person's sessions apart.
    pub fn name(&self) -> String {
        let bytes = self.hash.as_bytes().iter().take(NAME_BYTES);
        bytes.fold(String::new(), |mut name, byte| {
            write!(name, "{byte:02x}").expect("a text takes everything");
            name
        })
    }
}

/// A session found by its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// The person with their current role and account.
    pub signed_in: SignedIn,
    /// Accurate to a few minutes.
    pub seen_at: Timestamp,
}
