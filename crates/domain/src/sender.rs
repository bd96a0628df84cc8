//! Sender IDs: the names and numbers that accounts send under.
//!
//! An operator reviews a name; the holder of a number confirms it by a PIN.

pub mod originator;

mod notification;
mod pin;
mod state;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::callback_url::CallbackUrl;
use crate::ids::{AccountId, SenderId};
use crate::number::msisdn::{Msisdn, MsisdnError};
use crate::quoted::Quoted;

pub use notification::notification;
pub use pin::{Judgement, MAX_TRIES, NotAPin, PIN_LIFETIME, Pin, PinHash, PinOut, SEND_PAUSE};
pub use state::{SenderState, Step, UnknownState, WrongState};

pub const MIN_NAME_CHARS: usize = 3;
/// The limit of the networks.
pub const MAX_NAME_CHARS: usize = crate::sender::originator::MAX_NAME_CHARS;
/// The limit for the text to the reviewer.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SenderKind {
    /// A name, which an operator reviews.
    AlphaNumeric,
    /// A number, which its holder confirms.
    Msisdn,
}

impl SenderKind {
    const ALL: [Self; 2] = [Self::AlphaNumeric, Self::Msisdn];

    /// The stored form.
    pub const fn number(self) -> i16 {
        match self {
            Self::AlphaNumeric => 1,
            Self::Msisdn => 2,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AlphaNumeric => "AlphaNumeric",
            Self::Msisdn => "MSISDN",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a kind of sender; give AlphaNumeric or MSISDN", Quoted(.0))]
pub struct UnknownKind(String);

impl FromStr for SenderKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    Company,
    Product,
    Brand,
    Shortcode,
    Landline,
    Other,
}

impl Category {
    /// Every category, in the order of the API documentation.
    pub const ALL: [Self; 6] = [
        Self::Company,
        Self::Product,
        Self::Brand,
        Self::Shortcode,
        Self::Landline,
        Self::Other,
    ];

    /// The stored form.
    pub const fn number(self) -> i16 {
        match self {
            Self::Company => 1,
            Self::Product => 2,
            Self::Brand => 3,
            Self::Shortcode => 4,
            Self::Landline => 5,
            Self::Other => 6,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|category| category.number() == number)
    }

    /// The name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Company => "Company",
            Self::Product => "Product",
            Self::Brand => "Brand",
            Self::Shortcode => "Shortcode",
            Self::Landline => "Landline",
            Self::Other => "Other",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a category; give Company, Product, Brand, Shortcode, Landline or Other", Quoted(.0))]
pub struct UnknownCategory(String);

impl FromStr for Category {
    type Err = UnknownCategory;

    fn from_str(text: &str) -> Result<Self, UnknownCategory> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|category| category.name() == text);
        found.ok_or_else(|| UnknownCategory(text.to_owned()))
    }
}

/// The name or number of a sender ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SenderName {
    /// 3 to 11 Latin letters, digits, spaces, dots and `- _ & # !`.
    AlphaNumeric(String),
    Msisdn(Msisdn),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SenderNameError {
    #[error(
        "{} is not a sender name; give 3 to 11 Latin letters, digits, spaces, dots or - _ & # !, at least one of them a letter or digit",
        Quoted(.0)
    )]
    Name(String),
    #[error(transparent)]
    Number(#[from] MsisdnError),
}

impl SenderName {
    pub fn parse(kind: SenderKind, text: &str) -> Result<Self, SenderNameError> {
        match kind {
            SenderKind::Msisdn => Ok(Self::Msisdn(Msisdn::parse(text)?)),
            SenderKind::AlphaNumeric if is_name(text) => Ok(Self::AlphaNumeric(text.to_owned())),
            SenderKind::AlphaNumeric => Err(SenderNameError::Name(text.to_owned())),
        }
    }

    pub const fn kind(&self) -> SenderKind {
        match self {
            Self::AlphaNumeric(_) => SenderKind::AlphaNumeric,
            Self::Msisdn(_) => SenderKind::Msisdn,
        }
    }

    /// The form that is compared and stored: a number as its digits.
    pub fn compared(&self) -> &str {
        match self {
            Self::AlphaNumeric(name) => name,
            Self::Msisdn(number) => number.digits(),
        }
    }
}

/// With the plus sign of a number, as in JSON responses.
impl fmt::Display for SenderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlphaNumeric(name) => f.write_str(name),
            Self::Msisdn(number) => number.fmt(f),
        }
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    let is_known = |b: u8| b.is_ascii_alphanumeric() || b" .-_&#!".contains(&b);
    (MIN_NAME_CHARS..=MAX_NAME_CHARS).contains(&text.len())
        && text.bytes().all(is_known)
        && text.bytes().any(|b| b.is_ascii_alphanumeric())
}

/// A sender ID, as its account and the reviewer see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderRecord {
    pub id: SenderId,
    pub account: AccountId,
    pub name: SenderName,
    pub category: Option<Category>,
    /// For the reviewer.
    pub description: Option<String>,
    /// Where changes of its state are reported.
    pub notification_url: Option<CallbackUrl>,
    pub state: SenderState,
    /// The reviewer's reason for the state.
    pub reason: Option<String>,
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_keep_to_their_letters_and_length() {
        for (text, is_fine) in [
            ("abc", true),
            ("ab", false),
            ("ABCDEFGHIJK", true),
            ("ABCDEFGHIJKL", false),
            ("Acme-Inc", true),
            ("A_b&c#d!", true),
            ("Acme Inc.", true),
            ("12345", true),
            ("+12345", false),
            ("A@B", false),
            ("Ácme", false),
            ("a\tb", false),
            ("---", false),
            ("   ", false),
            ("", false),
        ] {
            let name = SenderName::parse(SenderKind::AlphaNumeric, text);
            assert_eq!(name.is_ok(), is_fine, "{text:?}");
            let expected = is_fine.then(|| text.to_owned());
            assert_eq!(name.ok().map(|name| name.to_string()), expected);
        }
    }

    #[test]
    fn a_number_is_compared_by_its_digits_and_shown_with_its_plus() {
        for text in ["+371 2000-0001", "37120000001"] {
            let name = SenderName::parse(SenderKind::Msisdn, text).expect(text);
            assert_eq!(name.compared(), "37120000001");
            assert_eq!(name.to_string(), "+37120000001");
            assert_eq!(name.kind(), SenderKind::Msisdn);
        }
        assert!(SenderName::parse(SenderKind::Msisdn, "Acme").is_err());
    }

    #[test]
    fn words_and_numbers_round_trip() {
        for kind in SenderKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(SenderKind::from_number(kind.number()), Some(kind));
        }
        for category in Category::ALL {
            assert_eq!(category.name().parse(), Ok(category));
            assert_eq!(Category::from_number(category.number()), Some(category));
        }
        let kind = "msisdn".parse::<SenderKind>().expect_err("the case counts");
        assert!(kind.to_string().contains("'msisdn'"), "{kind}");
        let category = "Shop".parse::<Category>().expect_err("unknown");
        assert!(
            category.to_string().contains("Landline or Other"),
            "{category}"
        );
        assert_eq!(
            (SenderKind::from_number(0), Category::from_number(7)),
            (None, None)
        );
    }

    proptest! {
        #[test]
        fn valid_names_round_trip(text in "\\PC{0,14}|[A-Za-z0-9 ._&#!-]{0,14}") {
            if let Ok(name) = SenderName::parse(SenderKind::AlphaNumeric, &text) {
                prop_assert_eq!(name.compared(), text.as_str());
                prop_assert!((3..=11).contains(&text.chars().count()));
                let again = SenderName::parse(name.kind(), name.compared());
                prop_assert_eq!(again, Ok(name));
            }
        }
    }
}
