//! Values that a request may not have.

use std::fmt::Display;

use domain::Code;

/// A field of a request. What callers call it, each interface decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    ActionTitle,
    ActionUrl,
    /// Where the result of a lookup goes.
    CallbackUrl,
    Category,
    CategoryDescription,
    Code,
    /// The number of digits of a code.
    CodeLength,
    Coding,
    CorrectBy,
    /// Where delivery reports go.
    DlrUrl,
    ExpireIn,
    ImageUrl,
    Message,
    NotificationUrl,
    Originator,
    Priority,
    Recipients,
    SendTime,
    SenderKind,
    SenderName,
    /// The number that a lookup is about.
    Subscriber,
    TestMode,
    Udh,
}

/// A field breaks a rule. The reason tells the caller which rule, and what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field:?}: {reason}")]
pub struct Invalid {
    pub field: Field,
    pub reason: String,
    /// The service error code, where the catalogue has one.
    pub code: Option<Code>,
}

impl Invalid {
    pub(crate) fn new(field: Field, reason: impl Display) -> Self {
        Self {
            field,
            reason: reason.to_string(),
            code: None,
        }
    }

    pub(crate) fn with_code(self, code: Code) -> Self {
        let code = Some(code);
        Self { code, ..self }
    }
}
