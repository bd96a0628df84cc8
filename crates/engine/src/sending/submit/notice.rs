//! Messages of the service itself.

use domain::message::text::measure;
use domain::message::{Holder, Recipient, SendTime, Submission};
use domain::{AccountId, Channel, Money, Msisdn, Originator, Priority, Timestamp};
use jiff::SignedDuration;

use super::order::{Invalid, PLACEHOLDER};
use crate::catalogue::Live;

/// What the service itself has to say to somebody, in the name of one of its accounts.
pub(crate) struct Notice {
    pub(crate) to: Msisdn,
    pub(crate) from: Originator,
    pub(crate) text: String,
    pub(crate) carries_code: bool,
    /// How long it is worth sending.
    pub(crate) lifetime: SignedDuration,
}

impl Notice {
    pub(super) fn submission(
        self,
        account: AccountId,
        now: Timestamp,
        live: &Live,
    ) -> Result<Submission, Invalid> {
        let shape = measure(&self.text).map_err(|e| Invalid::new("message", e))?;
        let recipient = Recipient {
            id: PLACEHOLDER,
            to: self.to,
            network: live.reference.locate(&self.to).network,
            price: Money::ZERO,
        };
        Ok(Submission {
            account,
            channel: Channel::Sms,
            interactive: None,
            recipients: vec![recipient],
            from: Some(self.from),
            text: self.text,
            carries_code: self.carries_code,
            shape,
            udh: None,
            coding_given: false,
            dlr_url: None,
            priority: Priority::High,
            send: SendTime::Now,
            accepted_at: now,
            expires_at: now + self.lifetime,
            test_mode: None,
            idempotency: None,
            holder: Holder::Nobody,
        })
    }
}
