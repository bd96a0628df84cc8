//! Messages of the service itself.

use domain::message::SendTime;
use domain::message::text::measure;
use domain::{AccountId, Channel, Msisdn, Originator, Priority, Timestamp};
use jiff::SignedDuration;

use super::order::Invalid;
use super::stages::Checked;

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
    pub(super) fn check(self, account: AccountId, now: Timestamp) -> Result<Checked, Invalid> {
        Ok(Checked {
            account,
            channel: Channel::Sms,
            recipients: vec![self.to],
            from: Some(self.from),
            shape: measure(&self.text).map_err(|e| Invalid::new("message", e))?,
            text: self.text,
            carries_code: self.carries_code,
            interactive: None,
            udh: None,
            coding_given: false,
            dlr_url: None,
            priority: Priority::High,
            send: SendTime::Now,
            accepted_at: now,
            expires_at: now + self.lifetime,
            test_mode: None,
            charged_parts: 0,
        })
    }
}
