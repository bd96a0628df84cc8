//! Where somebody is signed in.

use std::fmt::Write as _;
use std::net::IpAddr;

use jiff::Timestamp;

use super::SignedIn;
use crate::access::token::TokenHash;

/// How many bytes of a fingerprint name a session.
const NAME_BYTES: usize = 8;

/// Where somebody signs in from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Device {
    /// The address, where that is known.
    pub address: Option<IpAddr>,
    /// The browser in a few words, as it calls itself.
    pub browser: String,
}

/// A session, as its person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The secret's fingerprint.
    pub hash: TokenHash,
    /// When it began.
    pub opened_at: Timestamp,
    /// When it was last used, to within some minutes.
    pub seen_at: Timestamp,
    /// Until when it lasts.
    pub expires: Timestamp,
    /// Where it was opened.
    pub device: Device,
}

impl SessionRecord {
    /// What a page calls it: enough of the fingerprint to tell it from the others of its person.
    pub fn name(&self) -> String {
        let bytes = self.hash.as_bytes().iter().take(NAME_BYTES);
        bytes.fold(String::new(), |mut name, byte| {
            write!(name, "{byte:02x}").expect("a text takes everything");
            name
        })
    }
}

/// A session that was found by its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// Whose it is, by what is true of them now.
    pub signed_in: SignedIn,
    /// When it was last used, to within some minutes.
    pub seen_at: Timestamp,
}
