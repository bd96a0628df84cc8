//! Fuzzes the parser of request bodies, compared with `serde_json`.
//!
//! - It accepts exactly the JSON objects and lists in which no object has a duplicate key.
//! - It gives the same values.
//! - No way to read a field panics, and error texts stay short for any input.
#![no_main]

use std::collections::BTreeMap;
use std::fmt;

use libfuzzer_sys::fuzz_target;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

// The reader is private to `web`, so its file is compiled in here.
#[path = "../../crates/web/src/rest/json.rs"]
#[allow(dead_code, unreachable_pub)]
mod json;

use json::{Fields, Value};

/// An error's text repeats at most a part of the input.
const MAX_ERROR_CHARS: usize = 500;

/// Whether any object has a duplicate key.
struct HasDuplicateKey(bool);

impl<'de> Deserialize<'de> for HasDuplicateKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DuplicateKeyFinder)
    }
}

struct DuplicateKeyFinder;

impl<'de> Visitor<'de> for DuplicateKeyFinder {
    type Value = HasDuplicateKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<HasDuplicateKey, E> {
        Ok(HasDuplicateKey(false))
    }

    fn visit_bool<E>(self, _: bool) -> Result<HasDuplicateKey, E> {
        Ok(HasDuplicateKey(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<HasDuplicateKey, E> {
        Ok(HasDuplicateKey(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<HasDuplicateKey, E> {
        Ok(HasDuplicateKey(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<HasDuplicateKey, E> {
        Ok(HasDuplicateKey(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<HasDuplicateKey, E> {
        Ok(HasDuplicateKey(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<HasDuplicateKey, A::Error> {
        let mut found = false;
        while let Some(HasDuplicateKey(within)) = list.next_element()? {
            found |= within;
        }
        Ok(HasDuplicateKey(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HasDuplicateKey, A::Error> {
        let mut found = false;
        let mut seen = BTreeMap::new();
        while let Some((key, HasDuplicateKey(within))) = map.next_entry::<String, HasDuplicateKey>()? {
            found |= within | seen.insert(key, ()).is_some();
        }
        Ok(HasDuplicateKey(found))
    }
}

fn assert_same(own: &Value<'_>, oracle: &serde_json::Value) {
    let is_same = match (own, oracle) {
        (Value::Null, serde_json::Value::Null) => true,
        (Value::Bool(own), serde_json::Value::Bool(oracle)) => own == oracle,
        (Value::Whole(own), serde_json::Value::Number(oracle)) => oracle.as_i128() == Some(*own),
        (Value::Fraction(own), serde_json::Value::Number(oracle)) => {
            oracle.is_f64() && oracle.as_f64() == Some(*own)
        }
        (Value::Text(own), serde_json::Value::String(oracle)) => own == oracle,
        (Value::List(own), serde_json::Value::Array(oracle)) => {
            assert_eq!(own.len(), oracle.len());
            own.iter()
                .zip(oracle)
                .for_each(|(own, oracle)| assert_same(own, oracle));
            true
        }
        (Value::Object(own), serde_json::Value::Object(oracle)) => {
            assert_same_fields(own, oracle);
            true
        }
        _ => false,
    };
    assert!(is_same, "{own:?} is not {oracle:?}");
}

fn assert_same_fields(own: &Fields<'_>, oracle: &serde_json::Map<String, serde_json::Value>) {
    let mut left = own.clone();
    for (key, value) in oracle {
        match left.take(key) {
            Some(own) => assert_same(&own, value),
            None => assert!(value.is_null(), "{key:?} is lost"),
        }
    }
    assert_eq!(
        left,
        Fields::default(),
        "keys that the oracle does not know"
    );
}

/// Reads each field in every way that a request may.
fn take_all(fields: &Fields<'_>, oracle: &serde_json::Map<String, serde_json::Value>) {
    const NAME: &str = "a";
    let value = oracle.get(NAME).filter(|value| !value.is_null());
    let errors = [
        match fields.clone().take_text(NAME) {
            Ok(text) => {
                assert_eq!(text.as_deref(), value.and_then(serde_json::Value::as_str));
                None
            }
            Err(error) => Some(error.to_string()),
        },
        match fields.clone().take_digits(NAME) {
            Ok(digits) => {
                assert_eq!(digits.is_some(), value.is_some());
                None
            }
            Err(error) => Some(error.to_string()),
        },
        match fields.clone().take_whole(NAME) {
            Ok(number) => {
                let expected = value.and_then(|value| match value {
                    serde_json::Value::String(text) => text.parse().ok(),
                    other => other.as_i64(),
                });
                assert_eq!(number, expected);
                None
            }
            Err(error) => Some(error.to_string()),
        },
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.chars().count() <= MAX_ERROR_CHARS, "{error}");
    }
}

fuzz_target!(|body: &[u8]| {
    let oracle = serde_json::from_slice::<serde_json::Value>(body);
    let has_twins = serde_json::from_slice(body).map(|HasDuplicateKey(found)| found);
    let own = Fields::parse(body);
    let own_list = json::parse_list(body);
    match (oracle, has_twins) {
        (Ok(serde_json::Value::Object(oracle)), Ok(false)) => {
            let own = own.expect("an object whose keys are all different");
            assert_same_fields(&own, &oracle);
            take_all(&own, &oracle);
            assert!(own_list.is_err());
        }
        (Ok(serde_json::Value::Array(oracle)), Ok(false)) => {
            let list = own_list.expect("a list whose objects' keys are all different");
            assert_same(&Value::List(list), &serde_json::Value::Array(oracle));
            assert!(own.is_err());
        }
        _ => {
            let error = own.expect_err("no JSON object, or a key that stands twice");
            assert!(
                error.to_string().chars().count() <= MAX_ERROR_CHARS,
                "{error}"
            );
            assert!(own_list.is_err());
        }
    }
});
