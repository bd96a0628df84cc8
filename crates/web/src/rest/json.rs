//! Reading JSON bodies.
//!
//! `null` means absent and unknown fields are ignored, but a duplicate key is refused: two parsers of the same body
//! must not see different messages. Values borrow from the body, so reading is cheap.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use domain::quoted::Quoted;
use requests::{InvalidField, Problem};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// For few keys, comparing all of them is cheaper than hashing.
const FEW_KEYS: usize = 16;
/// Smaller whole numbers are exact as floating-point numbers: 2^53.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// Any JSON value of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Whole(i128),
    Fraction(f64),
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Object(Fields<'a>),
}

/// The members of a JSON object, every key once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("The body is not valid JSON: {0}.")]
    Malformed(serde_json::Error),
    #[error("The body is {0}; give a JSON object.")]
    NotAnObject(&'static str),
    #[error("The body is {0}; give a JSON array.")]
    NotAList(&'static str),
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Reads a body that must be one JSON array.
pub(super) fn parse_list(body: &[u8]) -> Result<Vec<Value<'_>>, BodyError> {
    match serde_json::from_slice(body).map_err(BodyError::Malformed)? {
        Value::List(list) => Ok(list),
        other => Err(BodyError::NotAList(other.kind())),
    }
}

impl<'a> Fields<'a> {
    /// Reads a body that must be one JSON object.
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, BodyError> {
        match serde_json::from_slice(body).map_err(BodyError::Malformed)? {
            Value::Object(fields) => Ok(fields),
            other => Err(BodyError::NotAnObject(other.kind())),
        }
    }

    /// Takes a field out; `null` counts as absent.
    pub(super) fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let index = self.0.iter().position(|(key, _)| key == name)?;
        match self.0.swap_remove(index).1 {
            Value::Null => None,
            value => Some(value),
        }
    }

    /// Takes a string.
    pub(super) fn take_text(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Cow<'a, str>>, InvalidField> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(InvalidField::new(
                name,
                format_args!("{other}; give a string"),
            )),
        }
    }

    /// Takes a string of digits, or a number.
    pub(super) fn take_digits(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Cow<'a, str>>, InvalidField> {
        self.take(name)
            .map(|value| value.into_digits(name))
            .transpose()
    }

    /// Takes a whole number, or a string of digits.
    pub(super) fn take_whole(&mut self, name: &'static str) -> Result<Option<i64>, InvalidField> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = match &value {
            Value::Whole(number) => i64::try_from(*number).ok(),
            Value::Text(text) if is_digits(text) => text.parse().ok(),
            _ => None,
        };
        number
            .map(Some)
            .ok_or_else(|| InvalidField::new(name, format_args!("{value}; give a whole number")))
    }
}

/// Refuses an absent field.
pub(super) fn require<T>(
    value: Option<T>,
    name: &'static str,
    what: &str,
) -> Result<T, InvalidField> {
    value.ok_or_else(|| InvalidField::new(name, format_args!("it is missing; give {what}")))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

impl<'a> Value<'a> {
    /// A string, or the digits of a number that is not negative.
    pub(super) fn into_digits(self, name: &'static str) -> Result<Cow<'a, str>, InvalidField> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Whole(number) if number >= 0 => Ok(number.to_string().into()),
            other => Err(InvalidField::new(
                name,
                format_args!("{other}; give a string"),
            )),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Whole(_) | Self::Fraction(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// For errors about a wrong type: scalars are repeated, other values named by their type.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value} is a boolean"),
            Self::Whole(number) => write!(f, "{number} is a number"),
            // Debug format keeps `1e300` short.
            Self::Fraction(number) => write!(f, "{number:?} is a number"),
            Self::Text(text) => write!(f, "{} is a string", Quoted(text)),
            Self::Null | Self::List(_) | Self::Object(_) => write!(f, "{} was sent", self.kind()),
        }
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(Value::Whole(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(Value::Whole(value.into()))
    }

    /// A whole number may be written as a fraction, such as `1.0`, as in JSON Schema.
    fn visit_f64<E>(self, value: f64) -> Result<Value<'de>, E> {
        if value.fract() == 0.0 && value.abs() < EXACT_BELOW {
            #[expect(clippy::cast_possible_truncation, reason = "checked right above")]
            let whole = value as i128;
            return Ok(Value::Whole(whole));
        }
        Ok(Value::Fraction(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let mut fields: Vec<(Cow<'de, str>, Value<'de>)> = Vec::new();
        let mut many: Option<HashSet<Cow<'de, str>>> = None;
        while let Some(Key(key)) = map.next_key()? {
            let twice = match &mut many {
                Some(seen) => !seen.insert(key.clone()),
                None => fields.iter().any(|(other, _)| *other == key),
            };
            if twice {
                return Err(A::Error::custom(format_args!(
                    "the key {} appears twice",
                    Quoted(&key)
                )));
            }
            fields.push((key, map.next_value()?));
            if fields.len() == FEW_KEYS {
                many = Some(fields.iter().map(|(key, _)| key.clone()).collect());
            }
        }
        Ok(Value::Object(Fields(fields)))
    }
}

/// A key, borrowed from the body unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyKey;
        impl<'de> Visitor<'de> for AnyKey {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(AnyKey)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(body: &str) -> Fields<'_> {
        Fields::parse(body.as_bytes()).expect(body)
    }

    #[test]
    fn fields_are_taken_by_name_and_null_is_absent() {
        let mut f = fields(
            r#"{"to":37120000001.0,"from":"Acme","priority":null,"expireIn":"360","coding":2e0,"x":[{}]}"#,
        );
        assert_eq!(f.take_digits("to"), Ok(Some("37120000001".into())));
        assert_eq!(f.take_text("from"), Ok(Some("Acme".into())));
        assert_eq!(f.take_text("priority"), Ok(None));
        assert_eq!(f.take_text("scheduled"), Ok(None));
        assert_eq!(f.take_whole("expireIn"), Ok(Some(360)));
        assert_eq!(f.take_whole("coding"), Ok(Some(2)));
    }

    #[test]
    fn a_value_of_the_wrong_kind_names_field_rule_and_value() {
        for (body, message) in [
            (
                r#"{"a":true}"#,
                "Invalid value for field 'a': true is a boolean; give a whole number.",
            ),
            (
                r#"{"a":{}}"#,
                "Invalid value for field 'a': an object was sent; give a whole number.",
            ),
            (
                r#"{"a":[1]}"#,
                "Invalid value for field 'a': a list was sent; give a whole number.",
            ),
            (
                r#"{"a":1.5}"#,
                "Invalid value for field 'a': 1.5 is a number; give a whole number.",
            ),
            (
                r#"{"a":1e300}"#,
                "Invalid value for field 'a': 1e300 is a number; give a whole number.",
            ),
            (
                r#"{"a":"1x"}"#,
                "Invalid value for field 'a': '1x' is a string; give a whole number.",
            ),
            (
                r#"{"a":9223372036854775808}"#,
                "Invalid value for field 'a': 9223372036854775808 is a number; give a whole number.",
            ),
        ] {
            assert_eq!(
                fields(body).take_whole("a").expect_err(body).to_string(),
                message
            );
        }
        let negative = fields(r#"{"a":-1}"#)
            .take_digits("a")
            .expect_err("negative")
            .to_string();
        assert_eq!(
            negative,
            "Invalid value for field 'a': -1 is a number; give a string."
        );
    }

    #[test]
    fn a_body_must_be_an_object() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep_object = format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000));
        for (body, reason) in [
            ("", "not valid JSON"),
            ("{", "not valid JSON"),
            ("{}x", "not valid JSON"),
            ("[]", "The body is a list"),
            ("null", "The body is null"),
            (r#"{"a":1,"a":2}"#, "the key 'a' appears twice"),
            (r#"{"a":1,"\u0061":2}"#, "the key 'a' appears twice"),
            (r#"{"x":{"a":1,"a":2}}"#, "the key 'a' appears twice"),
            (r#"{"a":"\ud800"}"#, "not valid JSON"),
            (r#"{"a":1e999}"#, "not valid JSON"),
            (deep.as_str(), "recursion limit"),
            (deep_object.as_str(), "recursion limit"),
        ] {
            let error = Fields::parse(body.as_bytes())
                .expect_err("refused")
                .to_string();
            assert!(error.contains(reason), "{body:.40}: {error}");
        }
        assert!(Fields::parse(b"{\"a\":\"\xff\"}").is_err(), "invalid UTF-8");
    }

    #[test]
    fn a_duplicate_key_is_found_among_many() {
        let many: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{n}")).collect();
        let many = many.join(",") + ",";
        assert!(Fields::parse(format!("{{{many}\"k100\":1}}").as_bytes()).is_ok());
        for twice in [0, 15, 16, 99] {
            let body = format!("{{{many}\"k{twice}\":1}}");
            assert!(Fields::parse(body.as_bytes()).is_err(), "k{twice}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(mut fields) = Fields::parse(&body) {
                fields.take_whole("a").ok();
            }
        }

        #[test]
        fn no_json_like_text_makes_it_panic(body in r#"\{("[a-c]":("[a-z\\"]{0,4}"|-?[0-9.e]{1,6}|null|true|\[\]|\{\}),?){0,6}\}"#) {
            if let Ok(mut fields) = Fields::parse(body.as_bytes()) {
                fields.take_text("a").ok();
                fields.take_digits("b").ok();
                fields.take_whole("c").ok();
            }
        }
    }
}
