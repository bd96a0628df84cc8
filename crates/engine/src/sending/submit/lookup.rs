//! A caller's order to look a subscriber up.

use std::borrow::Cow;

use domain::message::text::{Coding, Shape};
use domain::message::{Holder, SendTime, Submission};
use domain::{Access, AccountId, Channel, Country, Money, Msisdn, Priority, Timestamp};
use jiff::SignedDuration;

use super::order::{Invalid, To, check_recipients, check_url, price};
use super::{Submit, SubmitError};
use crate::catalogue::Live;

/// How long an answer is waited for.
const LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// An order to look up, every field as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupOrder<'a> {
    /// Whom.
    pub msisdn: Cow<'a, str>,
    /// Where the result goes; `None`: it is only kept.
    pub callback_url: Option<Cow<'a, str>>,
}

impl LookupOrder<'_> {
    /// Checks every field and finds the price.
    pub(super) fn check(
        self,
        account: AccountId,
        now: Timestamp,
        live: &Live,
    ) -> Result<Submission, Invalid> {
        let to = To::List(vec![self.msisdn]);
        let named = |mut invalid: Invalid| {
            invalid.field = "msisdn";
            invalid
        };
        let mut recipients = check_recipients(&to, None).map_err(named)?;
        for recipient in &mut recipients {
            price(recipient, Channel::Hlr, 1, account, live).map_err(named)?;
        }
        Ok(Submission {
            account,
            channel: Channel::Hlr,
            recipients,
            from: None,
            text: String::new(),
            carries_code: false,
            interactive: None,
            shape: Shape {
                coding: Coding::Gsm7,
                parts: 1,
            },
            udh: None,
            coding_given: false,
            dlr_url: check_url("callBackUrl", self.callback_url.as_deref())?,
            priority: Priority::High,
            send: SendTime::Now,
            accepted_at: now,
            expires_at: now + LIFETIME,
            test_mode: None,
            idempotency: None,
            holder: Holder::Nobody,
        })
    }
}

/// What a lookup costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupCost {
    /// The subscriber.
    pub to: Msisdn,
    /// Their country, as far as the prefix tells.
    pub country: Option<Country>,
    /// The price.
    pub price: Money,
}

impl Submit {
    /// Whom an order would look up, and what that would cost. Nothing is stored.
    pub fn lookup_cost(
        &self,
        access: &Access,
        order: LookupOrder<'_>,
    ) -> Result<LookupCost, SubmitError> {
        let live = self.catalogues.live();
        let submission = order.check(access.account, self.clock.now(), &live)?;
        self.check_routes(&submission, "msisdn")?;
        let recipient = submission
            .recipients
            .first()
            .expect("a lookup has one subscriber");
        let place = live.reference.locate(&recipient.to);
        Ok(LookupCost {
            to: recipient.to,
            country: place.country,
            price: recipient.price,
        })
    }
}
