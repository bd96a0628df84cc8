//! What a provider sends: JSON or a form, and where in it a value is.

use std::borrow::Cow;

use serde_json::Value;
use url::form_urlencoded;

use super::rule::RuleError;

/// The longest value that is read.
const MAX_VALUE_BYTES: usize = 256;
/// The most fields of a form that are read.
const MAX_FORM_FIELDS: usize = 200;
const FORM: &str = "application/x-www-form-urlencoded";

/// Where a value is: a JSON pointer, such as `/messages/0/id`. In a form `/Body` is the field `Body`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(String);

impl Pointer {
    /// `key` is the key that it is configured by.
    pub fn parse(key: &str, text: &str) -> Result<Self, RuleError> {
        let is_escape_right = |rest: &str| rest.starts_with(['0', '1']);
        if !text.starts_with('/') || !text.split('~').skip(1).all(is_escape_right) {
            let problem = format!("'{text}' is no JSON pointer; give one such as /messages/0/id");
            return Err(RuleError::new(key, problem));
        }
        Ok(Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The fields of a request or an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fields {
    Json(Value),
    Form(Vec<(String, String)>),
}

impl Fields {
    /// Reads a body. The content type decides; without a known one, what is not JSON is a form. `None` if it is
    /// neither.
    pub(super) fn read(content_type: Option<&str>, body: &[u8]) -> Option<Self> {
        let kind = content_type.and_then(|kind| kind.split(';').next());
        let is_form = kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(FORM));
        if !is_form {
            if let Ok(json) = serde_json::from_slice(body) {
                return Some(Self::Json(json));
            }
            let is_json =
                kind.is_some_and(|kind| kind.trim().to_ascii_lowercase().ends_with("json"));
            if is_json || !body.contains(&b'=') {
                return None;
            }
        }
        let pairs = form_urlencoded::parse(body).take(MAX_FORM_FIELDS);
        Some(Self::Form(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        ))
    }

    pub(super) fn get(&self, pointer: &Pointer) -> Option<Cow<'_, Value>> {
        match self {
            Self::Json(json) => json.pointer(&pointer.0).map(Cow::Borrowed),
            Self::Form(fields) => {
                let name = pointer.0[1..].replace("~1", "/").replace("~0", "~");
                let (_, value) = fields.iter().find(|(field, _)| *field == name)?;
                Some(Cow::Owned(Value::String(value.clone())))
            }
        }
    }

    /// The items of a list.
    pub(super) fn items(&self, list: &Pointer) -> Option<Vec<Self>> {
        let Self::Json(json) = self else {
            return None;
        };
        let items = json.pointer(&list.0)?.as_array()?;
        Some(items.iter().cloned().map(Self::Json).collect())
    }

    /// A text, or a number or truth value as text. `None` if it is not there, empty, or too long.
    pub(super) fn text(&self, pointer: &Pointer) -> Option<String> {
        let text = match &*self.get(pointer)? {
            Value::String(text) => text.trim().to_owned(),
            value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
            _ => return None,
        };
        (1..=MAX_VALUE_BYTES).contains(&text.len()).then_some(text)
    }

    /// A whole text, with its white space, however long.
    pub(super) fn whole_text(&self, pointer: &Pointer) -> Option<String> {
        match self.get(pointer)?.into_owned() {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointer(text: &str) -> Pointer {
        Pointer::parse("report.id", text).expect(text)
    }

    #[test]
    fn bodies_are_read_by_their_content_type() {
        let form = |fields: &[(&str, &str)]| {
            let field = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            Some(Fields::Form(fields.iter().map(field).collect()))
        };
        let json = |value| Some(Fields::Json(value));
        for (kind, body, expected) in [
            (
                Some("application/json"),
                r#"{"a":1}"#,
                json(json!({"a": 1})),
            ),
            (Some("application/json; charset=utf-8"), "a=1", None),
            (Some("application/problem+json"), "a=1", None),
            (None, r#"{"a":1}"#, json(json!({"a": 1}))),
            (None, "a=1&b=%2B+2", form(&[("a", "1"), ("b", "+ 2")])),
            (None, "nonsense", None),
            (None, "", None),
            (Some("text/plain"), "a=1", form(&[("a", "1")])),
            (
                Some("application/x-www-form-urlencoded"),
                "7",
                form(&[("7", "")]),
            ),
            (
                Some("APPLICATION/X-WWW-FORM-URLENCODED; charset=utf-8"),
                "a=1",
                form(&[("a", "1")]),
            ),
        ] {
            assert_eq!(
                Fields::read(kind, body.as_bytes()),
                expected,
                "{kind:?} {body}"
            );
        }
        assert_eq!(Fields::read(None, &[0xff, 0xfe]), None);
    }

    #[test]
    fn values_are_found_by_pointers() {
        let json = Fields::Json(json!({
            "a": [{ "b": " x " }], "n": 7, "t": true, "none": null, "e": "", "a/b": "slash", "long": "x".repeat(300),
        }));
        let form = Fields::read(None, b"a=x&a=y&n=7&a%2Fb=slash&e=").expect("a form");
        for (fields, at, expected) in [
            (&json, "/a/0/b", Some("x")),
            (&json, "/n", Some("7")),
            (&json, "/t", Some("true")),
            (&json, "/a~1b", Some("slash")),
            (&json, "/none", None),
            (&json, "/e", None),
            (&json, "/a", None),
            (&json, "/long", None),
            (&json, "/missing/0", None),
            (&form, "/a", Some("x")),
            (&form, "/n", Some("7")),
            (&form, "/a~1b", Some("slash")),
            (&form, "/e", None),
            (&form, "/b", None),
        ] {
            assert_eq!(fields.text(&pointer(at)).as_deref(), expected, "{at}");
        }
    }

    #[test]
    fn items_of_a_list_are_found() {
        let json = Fields::Json(json!({ "a": [{ "b": 1 }, 2], "none": [], "c": { "d": 1 } }));
        let form = Fields::read(None, b"a=x").expect("a form");
        let item = |value| Fields::Json(value);
        let two = vec![item(json!({ "b": 1 })), item(json!(2))];
        for (fields, at, expected) in [
            (&json, "/a", Some(two)),
            (&json, "/none", Some(Vec::new())),
            (&json, "/c", None),
            (&json, "/x", None),
            (&form, "/a", None),
        ] {
            assert_eq!(fields.items(&pointer(at)), expected, "{at}");
        }
    }

    #[test]
    fn pointers_begin_with_a_slash() {
        for text in ["", "id", "id/0", "/a~2", "/a~"] {
            let error = Pointer::parse("report.id", text)
                .expect_err(text)
                .to_string();
            let start = format!("report.id: '{text}' is no JSON pointer");
            assert!(error.starts_with(&start), "{error}");
        }
        for text in ["/", "/id", "/a~1b~0/0"] {
            assert_eq!(pointer(text).as_str(), text);
        }
    }
}
