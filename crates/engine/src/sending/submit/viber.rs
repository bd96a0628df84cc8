//! A request for Viber messages.

use std::borrow::Cow;

use domain::message::interactive::{Action, ActionTitle, ImageUrl, Interactive};
use domain::message::schedule::DEFAULT_EXPIRE_S;
use domain::message::text::{Coding, Shape};
use domain::{AccountId, CallbackUrl, Channel, Code, Originator, Timestamp};
use jiff::SignedDuration;

use super::sms::{
    To, check_priority, check_recipients, check_scheduled, check_test_mode, check_url,
};
use super::stages::Checked;
use crate::invalid::{Field, Invalid};

/// In Unicode code points.
const MAX_CHARS: usize = 1000;

/// A button, as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionInput<'a> {
    pub url: Option<Cow<'a, str>>,
    pub title: Option<Cow<'a, str>>,
}

/// A request for Viber messages, every field as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViberInput<'a> {
    pub to: To<'a>,
    pub from: Cow<'a, str>,
    pub message: Cow<'a, str>,
    /// Where delivery reports go.
    pub dlr_url: Option<Cow<'a, str>>,
    pub priority: Option<Cow<'a, str>>,
    /// The send time.
    pub scheduled: Option<Cow<'a, str>>,
    /// Whether sending is only emulated.
    pub test_mode: Option<Cow<'a, str>>,
    /// The country by whose rules the recipients' numbers are corrected.
    pub correct_by: Option<Cow<'a, str>>,
    pub action: Option<ActionInput<'a>>,
    /// The URL of an image.
    pub image: Option<Cow<'a, str>>,
}

impl ViberInput<'_> {
    /// Checks all fields but the originator, which is one of the approved sender IDs.
    pub(super) fn check(
        self,
        account: AccountId,
        from: Originator,
        now: Timestamp,
    ) -> Result<Checked, Invalid> {
        let recipients = check_recipients(&self.to, self.correct_by.as_deref())?;
        check_text(&self.message)?;
        let dlr_url = check_url(Field::DlrUrl, self.dlr_url.as_deref())?;
        let priority = check_priority(self.priority.as_deref())?;
        let send = check_scheduled(self.scheduled.as_deref(), now)?;
        let test_mode = self.test_mode.as_deref().map(check_test_mode).transpose()?;
        let interactive = check_interactive(self.action, self.image.as_deref())?;
        let validity = SignedDuration::from_secs(DEFAULT_EXPIRE_S.into());
        Ok(Checked {
            account,
            channel: Channel::Viber,
            recipients,
            from: Some(from),
            text: self.message.into_owned(),
            carries_code: false,
            notice: false,
            interactive: Some(interactive).filter(|interactive| !interactive.is_empty()),
            shape: Shape {
                coding: Coding::Ucs2,
                parts: 1,
            },
            udh: None,
            coding_given: false,
            dlr_url,
            priority,
            send,
            accepted_at: now,
            expires_at: send.due_at(now) + validity,
            test_mode,
            charged_parts: u8::from(test_mode.is_none()),
            trace: None,
        })
    }
}

fn check_text(text: &str) -> Result<(), Invalid> {
    let count = text.chars().count();
    let reason = match count {
        0 => "it is empty; give a text".to_owned(),
        _ if count > MAX_CHARS => format!("it has {count} characters, more than {MAX_CHARS}"),
        _ => return Ok(()),
    };
    Err(Invalid::new(Field::Message, reason))
}

fn check_interactive(
    action: Option<ActionInput<'_>>,
    image: Option<&str>,
) -> Result<Interactive, Invalid> {
    let image = image.map(ImageUrl::parse).transpose();
    Ok(Interactive {
        action: action.map(check_action).transpose()?,
        image: image.map_err(|e| Invalid::new(Field::ImageUrl, e).with_code(Code::BAD_IMAGE))?,
    })
}

fn check_action(order: ActionInput<'_>) -> Result<Action, Invalid> {
    let needed = |value: Option<Cow<'_, str>>, field, what| {
        let missing = || Invalid::new(field, format_args!("it is missing; a button needs {what}"));
        value.map(Cow::into_owned).ok_or_else(missing)
    };
    let url = needed(order.url, Field::ActionUrl, "the address that it opens")?;
    let title = needed(order.title, Field::ActionTitle, "a label")?;
    Ok(Action {
        url: CallbackUrl::parse(&url).map_err(|e| Invalid::new(Field::ActionUrl, e))?,
        title: ActionTitle::parse(&title).map_err(|e| Invalid::new(Field::ActionTitle, e))?,
    })
}
