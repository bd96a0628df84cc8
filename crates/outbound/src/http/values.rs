//! The variables of templates, and what they stand for.

use std::borrow::Cow;
use std::fmt::Write as _;

use domain::delivery::QueuedMessage;
use domain::{MessageId, Timestamp};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    /// The recipient, with a plus sign.
    To,
    /// The recipient, without a plus sign.
    ToDigits,
    From,
    Text,
    Id,
    Parts,
    Coding,
    Udh,
    ExpiresIn,
    ReportUrl,
    ImageUrl,
    ButtonTitle,
    ButtonUrl,
    /// When the request is built, in seconds since 1970.
    Timestamp,
    TimestampMs,
    /// The messages of a batch.
    Items,
    /// The provider's ID of the message.
    ProviderId,
    Method,
    /// The path and the query.
    Path,
    Body,
    Signature,
}

type Names = &'static [(&'static str, Variable)];

const MESSAGE: Names = &[
    ("to", Variable::To),
    ("to_digits", Variable::ToDigits),
    ("from", Variable::From),
    ("text", Variable::Text),
    ("id", Variable::Id),
    ("parts", Variable::Parts),
    ("coding", Variable::Coding),
    ("udh", Variable::Udh),
    ("expires_in", Variable::ExpiresIn),
    ("report_url", Variable::ReportUrl),
    ("image_url", Variable::ImageUrl),
    ("button_title", Variable::ButtonTitle),
    ("button_url", Variable::ButtonUrl),
];
const TIME: Names = &[
    ("timestamp", Variable::Timestamp),
    ("timestamp_ms", Variable::TimestampMs),
];
const BATCH: Names = &[("items", Variable::Items)];
const POLL: Names = &[("id", Variable::Id), ("provider_id", Variable::ProviderId)];
const SIGNED: Names = &[
    ("method", Variable::Method),
    ("path", Variable::Path),
    ("body", Variable::Body),
];
const SIGNATURE: Names = &[("signature", Variable::Signature)];

/// Where a template is, which decides what variables it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The request for one message.
    Message,
    /// The request for several messages.
    Batch,
    /// The request that asks for a report.
    Poll,
    /// What is signed.
    Signed,
    /// The header that has the signature.
    Signature,
}

impl Scope {
    pub(super) fn variables(self) -> impl Iterator<Item = &'static (&'static str, Variable)> {
        let lists: &[Names] = match self {
            Self::Message => &[MESSAGE, TIME],
            Self::Batch => &[MESSAGE, TIME, BATCH],
            Self::Poll => &[POLL, TIME],
            Self::Signed => &[SIGNED, TIME],
            Self::Signature => &[SIGNATURE, TIME],
        };
        lists.iter().copied().flatten()
    }
}

/// The value of a variable.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filled<'a> {
    Text(Cow<'a, str>),
    Number(i64),
    List(&'a [Value]),
    /// The message has no such thing.
    Nothing,
}

impl From<Option<String>> for Filled<'_> {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Text(text.into()))
    }
}

impl<'a> From<Option<&'a str>> for Filled<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Text(text.into()))
    }
}

/// What the variables stand for.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) subject: Subject<'a>,
    /// When the request is built.
    pub(super) at: Timestamp,
}

/// What a request or a part of it is about.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    Message(MessageValues<'a>),
    Poll {
        id: MessageId,
        provider_id: &'a str,
    },
    Signed {
        method: &'a str,
        path: &'a str,
        body: &'a str,
    },
    Signature(&'a str),
}

#[derive(Clone, Copy)]
pub(super) struct MessageValues<'a> {
    pub(super) queued: &'a QueuedMessage,
    pub(super) report_url: &'a str,
    /// In seconds.
    pub(super) expires_in: i64,
    /// The messages of a batch, if this is one.
    pub(super) items: &'a [Value],
}

impl<'a> Values<'a> {
    pub(super) fn get(&self, variable: Variable) -> Filled<'a> {
        match (variable, self.subject) {
            (Variable::Timestamp, _) => Filled::Number(self.at.as_second()),
            (Variable::TimestampMs, _) => Filled::Number(self.at.as_millisecond()),
            (Variable::Id, Subject::Poll { id, .. }) => Some(id.to_string()).into(),
            (Variable::ProviderId, Subject::Poll { provider_id, .. }) => Some(provider_id).into(),
            (Variable::Method, Subject::Signed { method, .. }) => Some(method).into(),
            (Variable::Path, Subject::Signed { path, .. }) => Some(path).into(),
            (Variable::Body, Subject::Signed { body, .. }) => Some(body).into(),
            (Variable::Signature, Subject::Signature(signature)) => Some(signature).into(),
            (variable, Subject::Message(message)) => message.get(variable),
            _ => Filled::Nothing,
        }
    }
}

impl<'a> MessageValues<'a> {
    fn get(&self, variable: Variable) -> Filled<'a> {
        let queued = self.queued;
        let interactive = queued.interactive.as_ref();
        let button = interactive.and_then(|it| it.action.as_ref());
        match variable {
            Variable::To => Some(queued.to.to_string()).into(),
            Variable::ToDigits => Some(queued.to.digits()).into(),
            Variable::From => queued.from.as_ref().map(ToString::to_string).into(),
            Variable::Text => Some(queued.text.as_str()).into(),
            Variable::Id => Some(queued.id.to_string()).into(),
            Variable::Parts => Filled::Number(queued.shape.parts.into()),
            Variable::Coding => Filled::Number(queued.shape.coding.number().into()),
            Variable::Udh => queued.udh.as_ref().map(|udh| hex(udh.as_bytes())).into(),
            Variable::ExpiresIn => Filled::Number(self.expires_in),
            Variable::ReportUrl => Some(self.report_url).into(),
            Variable::ImageUrl => interactive
                .and_then(|it| Some(it.image.as_ref()?.as_str()))
                .into(),
            Variable::ButtonTitle => button.map(|button| button.title.as_str()).into(),
            Variable::ButtonUrl => button.map(|button| button.url.as_str()).into(),
            Variable::Items => Filled::List(self.items),
            _ => Filled::Nothing,
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}
