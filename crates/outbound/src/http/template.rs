//! Texts with variables, such as `{{ to }}`.
//!
//! A template never decides how a value is encoded. The place where the result stands does: JSON, a form, a query, a
//! header or a URL. So no text of a message can break out of its place.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::values::{Filled, Scope, Values, Variable};

/// Everything but the unreserved characters of RFC 3986.
const URL_RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The variables that stand for a secret begin with this.
const SECRET_PREFIX: &str = "secret.";
/// Objects and lists may be nested this deep.
const MAX_DEPTH: usize = 16;

/// The secrets that templates may use, by name.
pub type Secrets = BTreeMap<String, String>;

/// What a template may refer to.
#[derive(Clone, Copy)]
pub(super) struct Vocabulary<'a> {
    pub(super) scope: Scope,
    pub(super) secrets: &'a Secrets,
}

/// A text that is no template. It says what to give instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a '{{{{' has no '}}}}'")]
    Unclosed,
    #[error(
        "'{{{{ {name} }}}}' is not a variable here; there are {known}, and secret.NAME for each key of secret"
    )]
    Unknown { name: String, known: String },
    #[error("'{{{{ secret.{0} }}}}' is not set; add {0} to secret")]
    UnknownSecret(String),
    #[error("objects and lists are nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

/// A text with variables. Its debug form does not show secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Secret(String),
    Variable(Variable),
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Secret(_) => f.write_str("(hidden)")?,
                Part::Variable(variable) => write!(f, "{{{{ {variable:?} }}}}")?,
            }
        }
        Ok(())
    }
}

impl Template {
    /// A template of a request for a message.
    pub fn parse(text: &str, secrets: &Secrets) -> Result<Self, TemplateError> {
        let scope = Scope::Message;
        Self::parse_in(text, Vocabulary { scope, secrets })
    }

    pub(super) fn parse_in(text: &str, vocabulary: Vocabulary<'_>) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, behind) = after.split_once("}}").ok_or(TemplateError::Unclosed)?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::parse(name.trim(), vocabulary)?);
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    pub(super) fn has(&self, variable: Variable) -> bool {
        self.0.contains(&Part::Variable(variable))
    }

    /// The text before the first variable.
    pub(super) fn fixed_start(&self) -> &str {
        match self.0.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// The text, if it depends on no message.
    pub fn fixed_text(&self) -> Option<String> {
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Secret(text) => Some(text.clone()),
            Part::Variable(_) => None,
        };
        self.0.iter().map(part).collect()
    }

    /// The text with something harmless in place of its variables.
    pub(super) fn outline(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Secret(_) | Part::Variable(_) => "x".to_owned(),
        };
        self.0.iter().map(part).collect()
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The text, without any encoding; `None` if it is a single variable that the message does not have.
    pub(super) fn text(&self, values: &Values<'_>) -> Option<String> {
        if let [Part::Variable(only)] = self.0[..]
            && values.get(only) == Filled::Nothing
        {
            return None;
        }
        Some(self.join(values, |text| Cow::Borrowed(text)))
    }

    /// The text for a header: characters that no header can hold are percent-encoded.
    pub(super) fn header(&self, values: &Values<'_>) -> String {
        self.join(values, |text| {
            utf8_percent_encode(text, percent_encoding::CONTROLS).into()
        })
    }

    /// The text for a URL: what variables stand for is percent-encoded.
    pub(super) fn url(&self, values: &Values<'_>) -> String {
        self.join(values, |text| {
            utf8_percent_encode(text, URL_RESERVED).into()
        })
    }

    /// A value in JSON. A single variable keeps its type.
    fn json(&self, values: &Values<'_>) -> Option<Value> {
        if let [Part::Variable(only)] = self.0[..] {
            match values.get(only) {
                Filled::Number(number) => return Some(number.into()),
                Filled::List(items) => return Some(items.into()),
                Filled::Text(_) | Filled::Nothing => {}
            }
        }
        self.text(values).map(Value::String)
    }

    fn join(&self, values: &Values<'_>, encode: impl Fn(&str) -> Cow<'_, str>) -> String {
        let mut joined = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => joined.push_str(text),
                Part::Secret(secret) => joined.push_str(&encode(secret)),
                Part::Variable(variable) => match values.get(*variable) {
                    Filled::Text(text) => joined.push_str(&encode(&text)),
                    Filled::Number(number) => {
                        write!(joined, "{number}").expect("a string takes everything");
                    }
                    Filled::List(items) => joined.push_str(&encode(&comma_separated(items))),
                    Filled::Nothing => {}
                },
            }
        }
        joined
    }
}

impl Part {
    fn parse(name: &str, vocabulary: Vocabulary<'_>) -> Result<Self, TemplateError> {
        if let Some(secret) = name.strip_prefix(SECRET_PREFIX) {
            let value = vocabulary.secrets.get(secret).cloned();
            let unknown = || TemplateError::UnknownSecret(secret.to_owned());
            return value.map(Self::Secret).ok_or_else(unknown);
        }
        let scope = vocabulary.scope;
        let known = scope.variables().find(|(known, _)| *known == name);
        let unknown = || {
            let known: Vec<&str> = scope.variables().map(|(known, _)| *known).collect();
            TemplateError::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            }
        };
        known
            .map(|(_, variable)| Self::Variable(*variable))
            .ok_or_else(unknown)
    }
}

/// The items of a list in a place that has no lists.
fn comma_separated(items: &[Value]) -> String {
    let text = |item: &Value| match item {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let texts: Vec<String> = items.iter().map(text).collect();
    texts.join(",")
}

/// A JSON value whose texts are templates.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonTemplate {
    Text(Template),
    Fixed(Value),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// A template inside a JSON value that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JsonTemplateError {
    /// Where it is, such as `messages.1.to`; the items of lists are counted from 1. Empty for the value itself.
    pub(super) path: String,
    pub(super) error: TemplateError,
}

impl JsonTemplate {
    pub(super) fn parse(
        value: &Value,
        vocabulary: Vocabulary<'_>,
    ) -> Result<Self, JsonTemplateError> {
        Self::parse_at(value, vocabulary, "", 0)
    }

    fn parse_at(
        value: &Value,
        vocabulary: Vocabulary<'_>,
        path: &str,
        depth: usize,
    ) -> Result<Self, JsonTemplateError> {
        let wrong = |error| JsonTemplateError {
            path: path.to_owned(),
            error,
        };
        let below = |key: &str| match path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        if depth > MAX_DEPTH {
            return Err(wrong(TemplateError::TooDeep));
        }
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse_in(text, vocabulary).map_err(wrong)?),
            Value::Array(items) => {
                let item = |(index, item): (usize, &Value)| {
                    Self::parse_at(
                        item,
                        vocabulary,
                        &below(&(index + 1).to_string()),
                        depth + 1,
                    )
                };
                Self::List(
                    items
                        .iter()
                        .enumerate()
                        .map(item)
                        .collect::<Result<_, _>>()?,
                )
            }
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| -> Result<_, JsonTemplateError> {
                    let parsed = Self::parse_at(value, vocabulary, &below(key), depth + 1)?;
                    Ok((key.clone(), parsed))
                };
                Self::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            fixed => Self::Fixed(fixed.clone()),
        })
    }

    pub(super) fn has(&self, variable: Variable) -> bool {
        match self {
            Self::Text(template) => template.has(variable),
            Self::Fixed(_) => false,
            Self::List(items) => items.iter().any(|item| item.has(variable)),
            Self::Object(fields) => fields.iter().any(|(_, value)| value.has(variable)),
        }
    }

    /// The value. What the message does not have is left out of objects and lists.
    pub(super) fn fill(&self, values: &Values<'_>) -> Option<Value> {
        match self {
            Self::Text(template) => template.json(values),
            Self::Fixed(value) => Some(value.clone()),
            Self::List(items) => Some(items.iter().filter_map(|item| item.fill(values)).collect()),
            Self::Object(fields) => {
                let field =
                    |(key, value): &(String, Self)| Some((key.clone(), value.fill(values)?));
                let filled: Map<String, Value> = fields.iter().filter_map(field).collect();
                Some(Value::Object(filled))
            }
        }
    }
}

#[cfg(test)]
mod tests;
