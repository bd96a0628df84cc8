//! The service's error codes: one table for callbacks and documentation, with text, hint and whether a retry helps.

use std::fmt;

/// Whether sending again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permanence {
    Temporary,
    Permanent,
    /// The code is not about a failure, or the result is unknown.
    Neither,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub number: u16,
    pub words: &'static str,
    pub hint: &'static str,
    /// Whether sending again may help.
    pub lasting: Permanence,
}

/// The number of an entry of [`CATALOGUE`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(u16);

impl Code {
    pub const FINE: Self = Self(0);
    /// The validity period expired.
    pub const EXPIRED: Self = Self(2);
    pub const SYSTEM_FAILURE: Self = Self(8);
    /// The network never reported a final state.
    pub const NO_FINAL_REPORT: Self = Self(14);
    /// No carrier serves the destination, or there is no price for it.
    pub const NO_ROUTE: Self = Self(20);
    /// The operators' block list stopped the message.
    pub const BLOCKED: Self = Self(21);
    /// The recipient gets too many messages within an hour.
    pub const RECIPIENT_LIMIT: Self = Self(23);
    /// The balance does not cover the message.
    pub const BALANCE_LIMIT: Self = Self(24);
    pub const SUSPENDED: Self = Self(25);
    pub const OPTED_OUT: Self = Self(27);
    /// The daily cap is reached.
    pub const SPENDING_CAP: Self = Self(28);
    /// The sender cancelled the message.
    pub const CANCELLED: Self = Self(29);
    /// No carrier of the route works at the moment.
    pub const ROUTE_DOWN: Self = Self(30);
    /// The next network throttles us.
    pub const THROTTLED: Self = Self(31);
    /// The subscriber cannot be reached at the moment.
    pub const ABSENT: Self = Self(43);
    /// The home network did not answer a lookup in time.
    pub const HLR_TIMEOUT: Self = Self(50);
    pub const INVALID_NUMBER: Self = Self(53);
    /// The coding or the user data header is wrong.
    pub const BAD_CODING: Self = Self(60);
    pub const TOO_LONG: Self = Self(61);
    /// The image of a Viber message cannot be used.
    pub const BAD_IMAGE: Self = Self(72);
    pub const INTERNAL: Self = Self(90);
    pub const LINK_DOWN: Self = Self(91);
    /// Everything that has no other code.
    pub const UNKNOWN: Self = Self(999);

    pub fn new(number: u16) -> Option<Self> {
        entry(number).map(|_| Self(number))
    }

    /// The number in callbacks and in the database.
    pub const fn number(self) -> u16 {
        self.0
    }

    pub fn entry(self) -> &'static Entry {
        entry(self.0).expect("only numbers of the catalogue become codes")
    }

    /// Whether the same request may work later.
    pub fn is_temporary(self) -> bool {
        self.entry().lasting == Permanence::Temporary
    }

    /// Whether a lookup with this code got no answer.
    pub const fn is_no_lookup(self) -> bool {
        matches!(self.0, 50..=52)
    }

    /// Whether no network took a message that failed with this code, so that its price is refunded.
    pub const fn is_refunded(self) -> bool {
        matches!(self.0, 20..=31 | 53 | 60 | 61 | 74 | 90 | 91)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({})", self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.entry().words)
    }
}

fn entry(number: u16) -> Option<&'static Entry> {
    CATALOGUE
        .binary_search_by_key(&number, |entry| entry.number)
        .ok()
        .map(|index| &CATALOGUE[index])
}

const fn temporary(number: u16, words: &'static str, hint: &'static str) -> Entry {
    Entry {
        number,
        words,
        hint,
        lasting: Permanence::Temporary,
    }
}

const fn permanent(number: u16, words: &'static str, hint: &'static str) -> Entry {
    Entry {
        number,
        words,
        hint,
        lasting: Permanence::Permanent,
    }
}

const fn other(number: u16, words: &'static str, hint: &'static str) -> Entry {
    Entry {
        number,
        words,
        hint,
        lasting: Permanence::Neither,
    }
}

const LATER: &str = "Send it again later.";
const CHECK_NUMBER: &str = "Check the number.";
const ASK_OPERATOR: &str = "Ask the operator of this service.";

/// Every code, ascending.
pub const CATALOGUE: &[Entry] = &[
    other(0, "no error", "Nothing to do."),
    permanent(1, "illegal subscriber", CHECK_NUMBER),
    other(
        2,
        "the validity period expired",
        "Give it more time with 'expireIn', or send it again.",
    ),
    permanent(
        3,
        "illegal equipment",
        "The handset is barred by its network; use another number.",
    ),
    temporary(4, "the handset's memory is full", LATER),
    permanent(
        5,
        "the handset does not follow the protocol",
        "Use another number or channel.",
    ),
    permanent(
        6,
        "the handset cannot receive SMS",
        "Use another number or channel.",
    ),
    temporary(7, "the subscriber is busy", LATER),
    temporary(8, "the network failed", LATER),
    permanent(
        9,
        "the network does not support this",
        "Send a plainer message.",
    ),
    temporary(10, "the network did not answer in time", LATER),
    temporary(11, "the network is congested", LATER),
    permanent(
        12,
        "the operator rejected the message",
        "Check sender and text against the operator's rules.",
    ),
    permanent(
        13,
        "the operator deleted the message",
        "Check sender and text against the operator's rules.",
    ),
    other(
        14,
        "the network gave no final report",
        "Whether it arrived is unknown; ask the recipient.",
    ),
    permanent(
        15,
        "the operator refused the sender",
        "Use a registered sender.",
    ),
    permanent(
        16,
        "the operator's content filter stopped the message",
        "Change the text.",
    ),
    temporary(17, "roaming is not allowed for the subscriber", LATER),
    permanent(
        20,
        "there is no route or no price for the destination",
        ASK_OPERATOR,
    ),
    permanent(
        21,
        "a filter or blacklist of this service stopped the message",
        ASK_OPERATOR,
    ),
    other(
        22,
        "the message is a duplicate",
        "Nothing to do: the first one counts.",
    ),
    temporary(23, "too many messages to this recipient", LATER),
    temporary(24, "the balance limit is reached", "Add credit."),
    permanent(25, "the account is suspended", ASK_OPERATOR),
    permanent(26, "the sender was revoked", "Use another sender."),
    permanent(
        27,
        "the recipient opted out",
        "Do not write to this recipient.",
    ),
    temporary(
        28,
        "the spending cap is reached",
        "Raise the cap, or wait until tomorrow.",
    ),
    other(29, "the message was cancelled", "Nothing to do."),
    temporary(30, "the route is down", LATER),
    temporary(31, "the next network throttles us", LATER),
    permanent(40, "the subscriber is unknown", CHECK_NUMBER),
    permanent(41, "the subscriber is barred", "Use another number."),
    permanent(
        42,
        "the subscriber has no SMS service",
        "Use another number or channel.",
    ),
    temporary(43, "the subscriber is absent", LATER),
    permanent(44, "the subscriber could not be identified", CHECK_NUMBER),
    permanent(
        45,
        "the number was ported and there is no route to its network",
        ASK_OPERATOR,
    ),
    permanent(46, "the number is not a mobile", CHECK_NUMBER),
    temporary(50, "the lookup timed out", LATER),
    temporary(51, "the lookup failed", LATER),
    permanent(52, "the network does not support lookups", "Nothing to do."),
    permanent(53, "the number is invalid", CHECK_NUMBER),
    permanent(
        60,
        "coding or user data header is wrong",
        "Check the coding and the header.",
    ),
    permanent(61, "the message is too long", "Shorten it."),
    permanent(70, "the recipient has no Viber", "Send an SMS."),
    permanent(
        71,
        "the recipient blocked the sender",
        "Do not write to this recipient.",
    ),
    permanent(
        72,
        "the image is unusable",
        "Use a JPEG, PNG or still GIF of at most 1 MB.",
    ),
    permanent(73, "the recipient's Viber is too old", "Send an SMS."),
    permanent(74, "the Viber sender is not active", ASK_OPERATOR),
    temporary(90, "this service failed", LATER),
    temporary(91, "the link to the next network is down", LATER),
    other(999, "an unknown error", ASK_OPERATOR),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_ascends_and_every_entry_is_found() {
        assert!(
            CATALOGUE
                .windows(2)
                .all(|pair| pair[0].number < pair[1].number)
        );
        for entry in CATALOGUE {
            assert_eq!(Code::new(entry.number).map(Code::entry), Some(entry));
        }
        assert_eq!(Code::new(18), None);
    }

    #[test]
    fn every_code_is_documented_as_it_is() {
        let page = include_str!("../../../../docs/CALLBACKS.md");
        for entry in CATALOGUE {
            let again = match entry.lasting {
                Permanence::Temporary => "later",
                Permanence::Permanent => "no",
                Permanence::Neither => "",
            };
            let row = format!(
                "| {} | {} | {again} | {} |",
                entry.number, entry.words, entry.hint
            );
            assert!(
                page.contains(&row),
                "docs/CALLBACKS.md lacks the row\n{row}"
            );
        }
    }

    #[test]
    fn only_messages_that_no_network_took_are_refunded() {
        let refunded: Vec<u16> = CATALOGUE
            .iter()
            .map(|e| Code(e.number))
            .filter(|c| c.is_refunded())
            .map(Code::number)
            .collect();
        let expected: Vec<u16> = [
            20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 53, 60, 61, 74, 90, 91,
        ]
        .to_vec();
        assert_eq!(refunded, expected);
    }
}
