//! What a client wants to know about a message, kept in the address of its callback until the receipt is sent.

use std::borrow::Cow;

use bytes::Bytes;
use domain::CallbackUrl;
use domain::message::outcome::Outcome;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use smpp::Address;

/// What separates the fields must not occur in them.
const ENCODED: &AsciiSet = NON_ALPHANUMERIC;
/// Stands for a destination that is not named.
const SEVERAL: &str = "*";

/// Which outcomes get a receipt: the low bits of `registered_delivery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Final,
    Failures,
    /// SMPP 5.0.
    Successes,
}

impl Wanted {
    /// `None` if no receipt is wanted.
    pub(crate) const fn from_registered_delivery(flags: u8) -> Option<Self> {
        match flags & 3 {
            1 => Some(Self::Final),
            2 => Some(Self::Failures),
            3 => Some(Self::Successes),
            _ => None,
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::Final => 1,
            Self::Failures => 2,
            Self::Successes => 3,
        }
    }

    pub(crate) const fn includes(self, outcome: Outcome) -> bool {
        match self {
            Self::Final => true,
            Self::Failures => !matches!(outcome, Outcome::Delivered),
            Self::Successes => matches!(outcome, Outcome::Delivered),
        }
    }
}

/// A client's request for a receipt, with what the receipt repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceiptRequest {
    pub(crate) wanted: Wanted,
    pub(crate) submitted_at: Timestamp,
    /// The number of parts of the message.
    pub(crate) parts: u8,
    /// The addresses as the client wrote them.
    pub(crate) source: Address,
    /// `None` if the client named several at once.
    pub(crate) destination: Option<Address>,
}

impl ReceiptRequest {
    /// The callback address of a message from this user.
    pub(crate) fn url(&self, system_id: &str) -> CallbackUrl {
        let details = format!(
            "{}/{}/{}/{}/{}",
            self.wanted.number(),
            self.submitted_at.as_second(),
            self.parts,
            write_address(&self.source),
            self.destination
                .as_ref()
                .map_or_else(|| SEVERAL.to_owned(), write_address),
        );
        CallbackUrl::smpp(system_id, &details)
    }

    /// The reverse of [`Self::url`].
    pub(crate) fn parse(url: &CallbackUrl) -> Option<Self> {
        let mut fields = url.smpp_details()?.split('/');
        let flags = fields.next()?.parse().ok()?;
        let seconds = fields.next()?.parse().ok()?;
        Some(Self {
            wanted: Wanted::from_registered_delivery(flags)?,
            submitted_at: Timestamp::from_second(seconds).ok()?,
            parts: fields.next()?.parse().ok()?,
            source: read_address(fields.next()?)?,
            destination: match fields.next()? {
                SEVERAL => None,
                named => Some(read_address(named)?),
            },
        })
    }
}

fn write_address(address: &Address) -> String {
    let digits = percent_encode(&address.digits, ENCODED);
    format!("{}.{}.{digits}", address.ton, address.npi)
}

fn read_address(text: &str) -> Option<Address> {
    let mut fields = text.splitn(3, '.');
    let ton = fields.next()?.parse().ok()?;
    let npi = fields.next()?.parse().ok()?;
    let digits: Cow<'_, [u8]> = percent_decode_str(fields.next()?).into();
    Some(Address::new(ton, npi, Bytes::from(digits.into_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_in_the_address_of_its_callback() {
        let request = ReceiptRequest {
            wanted: Wanted::Failures,
            submitted_at: Timestamp::from_second(1_900_000_000).expect("in range"),
            parts: 2,
            source: Address::new(5, 0, "A/c.me &"),
            destination: Some(Address::new(1, 1, "+447700900123")),
        };
        let url = request.url("acme");
        assert_eq!(
            url.as_str(),
            "smpp:acme/2/1900000000/2/5.0.A%2Fc%2Eme%20%26/1.1.%2B447700900123"
        );
        assert_eq!(ReceiptRequest::parse(&url).as_ref(), Some(&request));
        let several = ReceiptRequest {
            destination: None,
            ..request
        };
        let url = several.url("acme");
        assert!(url.as_str().ends_with("/*"), "{}", url.as_str());
        assert_eq!(ReceiptRequest::parse(&url), Some(several));
        assert_eq!(ReceiptRequest::parse(&CallbackUrl::smpp("acme", "")), None);
    }

    #[test]
    fn outcomes_are_reported_as_the_client_asked() {
        let failed = Outcome::Expired;
        for (flags, delivered, undelivered) in [
            (0, false, false),
            (1, true, true),
            (2, false, true),
            (3, true, false),
            (0x10, false, false),
            (0x11, true, true),
        ] {
            let wanted = Wanted::from_registered_delivery(flags);
            let includes = |outcome| wanted.is_some_and(|wanted| wanted.includes(outcome));
            assert_eq!(
                (includes(Outcome::Delivered), includes(failed)),
                (delivered, undelivered),
                "{flags:#x}"
            );
        }
    }
}
