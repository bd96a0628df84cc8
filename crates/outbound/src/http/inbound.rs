//! Reads a text from a handset, as a provider sends it.

use domain::inbound::assembly::WholeText;
use domain::inbound::number::InboundNumber;
use domain::message::text::{Coding, is_gsm7};
use domain::ports::ForwardedText;

use super::fields::{Fields, Pointer};
use super::rule::RuleError;
use crate::texts::{self, sender};

/// The longest text: more than 255 parts hold.
const MAX_TEXT_CHARS: usize = 40_000;

/// Where an inbound message has what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundRules {
    /// Where a request has a list of messages. The other pointers are relative to one of them.
    pub list: Option<Pointer>,
    pub from: Pointer,
    pub to: InboundRecipient,
    pub text: Pointer,
    /// The provider's ID, by which a repetition is recognised.
    pub id: Option<Pointer>,
}

/// Which number a text was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundRecipient {
    At(Pointer),
    /// All texts of the carrier are for this number.
    Always(InboundNumber),
}

impl InboundRecipient {
    /// A JSON pointer, or a number. `key` is the key that it is configured by.
    pub fn parse(key: &str, text: &str) -> Result<Self, RuleError> {
        if text.starts_with('/') {
            return Pointer::parse(key, text).map(Self::At);
        }
        let number = InboundNumber::parse(text).map(Self::Always);
        number.map_err(|_| {
            let problem = format!("'{text}' is neither a JSON pointer, such as /to, nor a number");
            RuleError::new(key, problem)
        })
    }
}

/// The body is not an inbound message. The text tells the provider's users what is wrong.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotAText {
    #[error("There is no value at '{0}'.")]
    Missing(String),
    #[error("The value at '{0}' is not a number that messages can be sent to.")]
    Recipient(String),
    #[error("The value at '{0}' is longer than {MAX_TEXT_CHARS} characters.")]
    Long(String),
    #[error("There is no list at '{0}'.")]
    NoList(String),
}

impl InboundRules {
    /// All messages of a request, each with what a repetition is recognised by. If one cannot be read, none is returned.
    pub(super) fn read_all(
        &self,
        carrier: &str,
        fields: &Fields,
    ) -> Result<Vec<([u8; 16], ForwardedText)>, NotAText> {
        let read = |fields: &Fields| {
            let source = self.source(carrier, fields).unwrap_or_else(random_source);
            Ok((source, self.read(carrier, fields)?))
        };
        let Some(list) = &self.list else {
            return Ok(vec![read(fields)?]);
        };
        let items = fields.items(list);
        let items = items.ok_or_else(|| NotAText::NoList(list.as_str().to_owned()))?;
        items.iter().map(read).collect()
    }

    fn read(&self, carrier: &str, fields: &Fields) -> Result<ForwardedText, NotAText> {
        let missing = |pointer: &Pointer| NotAText::Missing(pointer.as_str().to_owned());
        let get = |pointer: &Pointer| fields.text(pointer).ok_or_else(|| missing(pointer));
        let from = get(&self.from)?;
        let to = self.recipient(fields)?;
        let text = fields
            .whole_text(&self.text)
            .ok_or_else(|| missing(&self.text))?;
        if text.chars().nth(MAX_TEXT_CHARS).is_some() {
            return Err(NotAText::Long(self.text.as_str().to_owned()));
        }
        let coding = if text.chars().all(is_gsm7) {
            Coding::Gsm7
        } else {
            Coding::Ucs2
        };
        Ok(ForwardedText {
            carrier: carrier.to_owned(),
            from: sender(&from),
            to,
            whole: WholeText {
                text,
                coding,
                is_incomplete: false,
            },
            udh: None,
            parts: 1,
        })
    }

    fn recipient(&self, fields: &Fields) -> Result<InboundNumber, NotAText> {
        let pointer = match &self.to {
            InboundRecipient::Always(number) => return Ok(number.clone()),
            InboundRecipient::At(pointer) => pointer,
        };
        let at = || pointer.as_str().to_owned();
        let to = fields
            .text(pointer)
            .ok_or_else(|| NotAText::Missing(at()))?;
        InboundNumber::from_address(&to, to.starts_with('+')).map_err(|_| NotAText::Recipient(at()))
    }

    /// By what a repetition is recognised; `None` without an ID of the provider.
    fn source(&self, carrier: &str, fields: &Fields) -> Option<[u8; 16]> {
        let id = fields.text(self.id.as_ref()?)?;
        Some(texts::source(carrier, &[&id]))
    }
}

/// Without an ID each one is another text.
fn random_source() -> [u8; 16] {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the operating system gives random bytes");
    random
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> InboundRules {
        let pointer = |text| Pointer::parse("inbound.from", text).expect("a pointer");
        InboundRules {
            list: None,
            from: pointer("/From"),
            to: InboundRecipient::parse("inbound.to", "/To").expect("a pointer"),
            text: pointer("/Body"),
            id: Some(pointer("/Sid")),
        }
    }

    fn fields(body: &str) -> Fields {
        Fields::read(None, body.as_bytes()).expect(body)
    }

    #[test]
    fn texts_are_read() {
        for (body, from, to, text) in [
            (
                "From=%2B37120000001&To=%2B37120000002&Body=Hello+%7B%7D+%E2%82%AC",
                "+37120000001",
                "+37120000002",
                "Hello {} €",
            ),
            (
                r#"{"From":37120000001,"To":"1234","Body":" Жё 😀 "}"#,
                "+37120000001",
                "1234",
                " Жё 😀 ",
            ),
            ("From=Acme&To=37120000002&Body=", "Acme", "+37120000002", ""),
            ("From=12345&To=1234567&Body=x", "12345", "1234567", "x"),
        ] {
            let read = rules().read("beta", &fields(body)).expect(body);
            assert_eq!(read.carrier, "beta");
            assert_eq!(
                (read.from.as_str(), read.to.to_string().as_str()),
                (from, to),
                "{body}"
            );
            assert_eq!(read.whole.text, text, "{body}");
            assert_eq!((read.parts, read.udh), (1, None));
        }
        let long = "x".repeat(2000);
        let read = rules().read("beta", &fields(&format!("From=1234&To=1234&Body={long}")));
        let read = read.expect("a text");
        assert_eq!(read.whole.text, long);
    }

    #[test]
    fn all_texts_may_be_for_one_number() {
        let always = InboundRules {
            to: InboundRecipient::parse("inbound.to", "+37120000002").expect("a number"),
            ..rules()
        };
        let read = always
            .read("beta", &fields("From=1234&Body=x"))
            .expect("a text");
        assert_eq!(read.to.to_string(), "+37120000002");
        let error = InboundRecipient::parse("inbound.to", "to").expect_err("neither");
        assert!(
            error.to_string().starts_with("inbound.to: 'to' is neither"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_text_has_a_reason() {
        let long = format!("From=1234&To=1234&Body={}", "x".repeat(MAX_TEXT_CHARS + 1));
        for (body, expected) in [
            ("To=1234&Body=x", "There is no value at '/From'."),
            ("From=1234&Body=x", "There is no value at '/To'."),
            ("From=1234&To=1234", "There is no value at '/Body'."),
            (
                r#"{"From":"1","To":"1234","Body":7}"#,
                "There is no value at '/Body'.",
            ),
            (
                "From=1234&To=Acme&Body=x",
                "The value at '/To' is not a number that messages can be sent to.",
            ),
            (
                &long,
                "The value at '/Body' is longer than 40000 characters.",
            ),
        ] {
            let error = rules().read("beta", &fields(body)).expect_err("no text");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_request_may_have_several_texts() {
        let rules = InboundRules {
            list: Pointer::parse("inbound.list", "/results").ok(),
            ..rules()
        };
        let text = |id| format!(r#"{{"From":"1234","To":"1234","Body":"x","Sid":"{id}"}}"#);
        let [one, two] = [text(1), text(2)];
        let read = |body: String| rules.read_all("beta", &fields(&body));
        let both = read(format!(r#"{{"results":[{one},{two}]}}"#)).expect("texts");
        assert_eq!(both.len(), 2);
        assert_ne!(both[0].0, both[1].0);
        let none = read(r#"{"results":[]}"#.to_owned());
        assert_eq!(none.map(|texts| texts.len()), Ok(0));
        for (body, expected) in [
            (one.clone(), "There is no list at '/results'."),
            (
                format!(r#"{{"results":{one}}}"#),
                "There is no list at '/results'.",
            ),
            (
                format!(r#"{{"results":[{one},{{}}]}}"#),
                "There is no value at '/From'.",
            ),
        ] {
            let error = read(body).map(|texts| texts.len()).expect_err("no texts");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_repetition_has_the_same_source() {
        let source = |carrier: &str, body: &str| rules().source(carrier, &fields(body));
        let first = source("beta", "Sid=1&Body=x");
        assert!(first.is_some());
        assert_eq!(source("beta", "Sid=1&Body=y"), first);
        assert_ne!(source("beta", "Sid=2&Body=x"), first);
        assert_ne!(source("gamma", "Sid=1&Body=x"), first);
        assert_eq!(source("beta", "Body=x"), None);
    }
}
