//! Keys that appear twice in one object of a message.
//!
//! JSON readers disagree about which of the two counts, and a tool must not act on the wrong one.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The first doubled key of each kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Doubled {
    /// Within the arguments of a tool call.
    pub(super) argument: Option<String>,
    /// Anywhere else in the message.
    pub(super) elsewhere: Option<String>,
}

impl Doubled {
    /// Looks for doubled keys in a JSON text.
    pub(super) fn find(text: &[u8]) -> serde_json::Result<Self> {
        let mut doubled = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(text);
        let walk = Walk {
            place: Place::Message,
            doubled: &mut doubled,
        };
        walk.deserialize(&mut reader)?;
        reader.end()?;
        Ok(doubled)
    }
}

/// Where in the message a value is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Message,
    Params,
    Arguments,
    Elsewhere,
}

impl Place {
    fn of_field(self, key: &str) -> Self {
        match (self, key) {
            (Self::Message, "params") => Self::Params,
            (Self::Params, "arguments") | (Self::Arguments, _) => Self::Arguments,
            _ => Self::Elsewhere,
        }
    }
}

/// Reads a value and keeps only doubled keys.
struct Walk<'a> {
    place: Place,
    doubled: &'a mut Doubled,
}

impl Walk<'_> {
    fn note(&mut self, key: String) {
        let found = match self.place {
            Place::Arguments => &mut self.doubled.argument,
            Place::Message | Place::Params | Place::Elsewhere => &mut self.doubled.elsewhere,
        };
        found.get_or_insert(key);
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let place = match self.place {
            Place::Arguments => Place::Arguments,
            Place::Message | Place::Params | Place::Elsewhere => Place::Elsewhere,
        };
        let doubled = self.doubled;
        while list
            .next_element_seed(Walk {
                place,
                doubled: &mut *doubled,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = object.next_key::<String>()? {
            let place = self.place.of_field(&key);
            object.next_value_seed(Walk {
                place,
                doubled: &mut *self.doubled,
            })?;
            if !seen.insert(key.clone()) {
                self.note(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_keys_are_found_where_they_are() {
        for (text, argument, elsewhere) in [
            (
                r#"{"id":1,"params":{"name":"x","arguments":{"to":"1","from":"2"}}}"#,
                None,
                None,
            ),
            (
                r#"{"params":{"arguments":{"to":"1","to":"1"}}}"#,
                Some("to"),
                None,
            ),
            (
                r#"{"params":{"arguments":{"to":"1","\u0074o":"2"}}}"#,
                Some("to"),
                None,
            ),
            (
                r#"{"params":{"arguments":{"a":[{"b":1,"b":2}]}}}"#,
                Some("b"),
                None,
            ),
            (
                r#"{"params":{"arguments":{"a":{"b":1},"c":{"b":1}}}}"#,
                None,
                None,
            ),
            (
                r#"{"params":{"arguments":{},"arguments":{}}}"#,
                None,
                Some("arguments"),
            ),
            (r#"{"id":1,"id":2,"params":{}}"#, None, Some("id")),
            (r#"{"params":{"_meta":{"x":1,"x":2}}}"#, None, Some("x")),
            (r#"{"arguments":{"x":1,"x":2}}"#, None, Some("x")),
            (r#"[{"params":1,"params":2}]"#, None, Some("params")),
            ("null", None, None),
            ("-1.5", None, None),
        ] {
            let found = Doubled::find(text.as_bytes()).expect(text);
            let found = (found.argument.as_deref(), found.elsewhere.as_deref());
            assert_eq!(found, (argument, elsewhere), "{text}");
        }
        for text in ["", "{", "{} {}"] {
            assert!(Doubled::find(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
