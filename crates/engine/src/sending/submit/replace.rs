//! Replacing a scheduled message by the rules for a new one.

use domain::message::text::Coding;
use domain::message::{SendTime, WaitingMessage};
use domain::ports::Replace;
use domain::{Access, CallbackUrl, Holder, MessageId, Timestamp};

use super::stages::Checked;
use super::{SmsInput, Submit, SubmitError, To, check_active};
use crate::invalid::{Field, Invalid};

/// What replaces a scheduled message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacementInput {
    pub text: String,
    /// `None`: the service chooses the coding and splits the text.
    pub coding: Option<Coding>,
    /// The callback URL or the sessions that get the receipt.
    pub receipts: Option<CallbackUrl>,
    /// The send time; `None` leaves it as it is.
    pub at: Option<Timestamp>,
    /// The validity period from the send time, in seconds; `None` leaves it as it is.
    pub expire_in: Option<i64>,
}

impl Submit {
    /// Replaces a message that is still scheduled, and charges or refunds the difference between the old price and
    /// the present price of the new text. Whether the recipient opted out is checked when it is sent.
    pub async fn replace(
        &self,
        access: &Access,
        id: MessageId,
        waiting: &WaitingMessage,
        by: ReplacementInput,
    ) -> Result<Replace, SubmitError> {
        check_active(access)?;
        let from = self.approvals.originator(access, &waiting.from).await?;
        let now = self.clock.now();
        let order = SmsInput {
            to: To::Text(waiting.to.to_string().into()),
            from: waiting.from.as_str().into(),
            message: by.text.into(),
            dlr_url: None,
            priority: Some(waiting.priority.name().into()),
            scheduled: by.at.map(|at| at.to_string().into()),
            udh: None,
            coding: by.coding.map(|coding| coding.number().into()),
            test_mode: waiting
                .test_mode
                .map(|mode| mode.number().to_string().into()),
            expire_in: by.expire_in,
            correct_by: None,
        };
        let mut checked = order.check(access.account, from, now)?;
        checked.dlr_url = by.receipts;
        set_times(
            &mut checked,
            waiting,
            by.at.is_some(),
            by.expire_in.is_some(),
        )?;
        let routed = checked.route(&self.catalogues.live(), &self.routing)?;
        routed.check_countries(access)?;
        routed.check_routes(Field::Recipients)?;
        let (numbered, _) = routed.number(id);
        let submission = numbered.into_submission(Holder::Nobody, None);
        let replaced = self.store.replace(submission).await?;
        match &replaced {
            Ok(Replace::Done) => {
                metrics::counter!("switchboard_messages_replaced_total").increment(1);
            }
            Err(_) => metrics::counter!("switchboard_submissions_unpaid_total").increment(1),
            Ok(_) => {}
        }
        replaced.map_err(SubmitError::NotPaid)
    }
}

/// The times that are not given stay as they are; the validity counts from the send time. A time that has just passed is
/// due at once, but the message is scheduled until a node claims it.
fn set_times(
    checked: &mut Checked,
    waiting: &WaitingMessage,
    has_time: bool,
    has_validity: bool,
) -> Result<(), Invalid> {
    let given = checked.send.due_at(checked.accepted_at);
    let validity = if has_validity {
        checked.expires_at.duration_since(given)
    } else {
        waiting.expires_at.duration_since(waiting.at)
    };
    let at = if has_time { given } else { waiting.at };
    let expires_at = at.checked_add(validity);
    checked.expires_at = expires_at.map_err(|error| Invalid::new(Field::ExpireIn, error))?;
    checked.send = SendTime::At(at);
    Ok(())
}
