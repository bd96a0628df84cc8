//! Messages that the service writes: PINs, and the codes of verifications.

use domain::message::SendTime;
use domain::message::text::measure;
use domain::{AccountId, Channel, Msisdn, Originator, Priority, Timestamp};
use jiff::SignedDuration;

use super::stages::Checked;
use crate::invalid::{Field, Invalid};

/// A message that the service writes in the name of an account.
pub(crate) struct Notice {
    pub(crate) to: Msisdn,
    pub(crate) from: Originator,
    pub(crate) text: String,
    pub(crate) carries_code: bool,
    /// The account wrote the text: it pays for the message as for any other, and opt-outs stop it.
    pub(crate) paid: bool,
    /// Its validity period.
    pub(crate) lifetime: SignedDuration,
}

impl Notice {
    pub(super) fn check(self, account: AccountId, now: Timestamp) -> Result<Checked, Invalid> {
        let shape = measure(&self.text).map_err(|e| Invalid::new(Field::Message, e))?;
        Ok(Checked {
            account,
            channel: Channel::Sms,
            recipients: vec![self.to],
            from: Some(self.from),
            shape,
            text: self.text,
            carries_code: self.carries_code,
            notice: !self.paid,
            interactive: None,
            udh: None,
            coding_given: false,
            dlr_url: None,
            priority: Priority::High,
            send: SendTime::Now,
            accepted_at: now,
            expires_at: now + self.lifetime,
            test_mode: None,
            charged_parts: if self.paid { shape.parts } else { 0 },
            trace: None,
        })
    }
}
