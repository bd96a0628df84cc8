//! A request for a lookup.

use std::borrow::Cow;

use domain::message::SendTime;
use domain::message::text::{Coding, Shape};
use domain::{Access, AccountId, Channel, Country, Money, Msisdn, Priority, Timestamp};
use jiff::SignedDuration;

use super::sms::{To, check_recipients, check_url};
use super::stages::Checked;
use super::{Submit, SubmitError};
use crate::invalid::{Field, Invalid};

/// How long a lookup waits for its answer.
const LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// A request for a lookup, every field as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupInput<'a> {
    pub msisdn: Cow<'a, str>,
    /// Where the result goes; `None` if it is only stored.
    pub callback_url: Option<Cow<'a, str>>,
}

impl LookupInput<'_> {
    pub(super) fn check(self, account: AccountId, now: Timestamp) -> Result<Checked, Invalid> {
        let to = To::List(vec![self.msisdn]);
        Ok(Checked {
            account,
            channel: Channel::Hlr,
            recipients: check_recipients(&to, None).map_err(as_subscriber)?,
            from: None,
            text: String::new(),
            carries_code: false,
            notice: false,
            interactive: None,
            shape: Shape {
                coding: Coding::Gsm7,
                parts: 1,
            },
            udh: None,
            coding_given: false,
            dlr_url: check_url(Field::CallbackUrl, self.callback_url.as_deref())?,
            priority: Priority::High,
            send: SendTime::Now,
            accepted_at: now,
            expires_at: now + LIFETIME,
            test_mode: None,
            charged_parts: 1,
            trace: None,
        })
    }
}

/// The recipient of a lookup is its subscriber.
pub(super) fn as_subscriber(invalid: Invalid) -> Invalid {
    Invalid {
        field: Field::Subscriber,
        ..invalid
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupCost {
    pub to: Msisdn,
    /// As far as the number's prefix tells.
    pub country: Option<Country>,
    pub price: Money,
}

impl Submit {
    /// Who would be looked up, and what that would cost. Nothing is stored.
    pub fn lookup_cost(
        &self,
        access: &Access,
        order: LookupInput<'_>,
    ) -> Result<LookupCost, SubmitError> {
        let checked = order.check(access.account, self.clock.now())?;
        let routed = self.route(checked).map_err(as_subscriber)?;
        routed.check_routes(Field::Subscriber)?;
        let destination = routed.destinations.first();
        let destination = destination.expect("a lookup has one subscriber");
        Ok(LookupCost {
            to: destination.to,
            country: destination.location.country,
            price: destination.price,
        })
    }
}
