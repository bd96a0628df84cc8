//! The names that callers know the fields of a request by: in JSON and in the dashboard's forms.

use engine::{Field, Invalid};

/// A field breaks a rule. The text tells the caller which field, which rule and what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid value for field '{name}': {reason}.")]
pub struct InvalidField {
    pub name: &'static str,
    pub reason: String,
}

impl InvalidField {
    pub fn new(name: &'static str, reason: impl std::fmt::Display) -> Self {
        Self {
            name,
            reason: reason.to_string(),
        }
    }
}

impl From<Invalid> for InvalidField {
    fn from(invalid: Invalid) -> Self {
        Self {
            name: field_name(invalid.field),
            reason: invalid.reason,
        }
    }
}

pub fn field_name(field: Field) -> &'static str {
    match field {
        Field::ActionTitle => "im.action.title",
        Field::ActionUrl => "im.action.url",
        Field::CallbackUrl => "callBackUrl",
        Field::Category => "category",
        Field::CategoryDescription => "categoryDescription",
        Field::Code => "code",
        Field::CodeLength => "length",
        Field::Coding => "coding",
        Field::CorrectBy => "correctBy",
        Field::DlrUrl => "dlrUrl",
        Field::ExpireIn => "expireIn",
        Field::ImageUrl => "im.image.url",
        Field::Message => "message",
        Field::NotificationUrl => "notificationUrl",
        Field::Originator => "from",
        Field::Priority => "priority",
        Field::Recipients => "to",
        Field::SendTime => "scheduled",
        Field::SenderKind => "type",
        Field::SenderName => "name",
        Field::Subscriber => "msisdn",
        Field::TestMode => "testMode",
        Field::Udh => "udh",
    }
}
