//! A value that is copied from one database to the other.

use bytes::BytesMut;
use rusqlite::types::{FromSql as FromSqlite, FromSqlResult, ToSqlOutput, ValueRef};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type AnyError = Box<dyn std::error::Error + Sync + Send>;

/// A value that both databases can store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Null,
    /// An integer; a Boolean is 1 or 0.
    Int(i64),
    Bytes(Vec<u8>),
    Text(String),
}

/// The kinds of columns that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An integer of any size, or a Boolean.
    Int,
    Bytes,
    Text,
}

/// A column, as described by the catalogue of a database.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `None` if values of its type cannot be copied.
    pub(crate) kind: Option<Kind>,
    /// The type's name, for errors.
    pub(crate) type_name: String,
}

impl Value {
    /// How much memory it takes, roughly.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Null | Self::Int(_) => 0,
                Self::Bytes(bytes) => bytes.len(),
                Self::Text(text) => text.len(),
            }
    }
}

/// The kind of a `PostgreSQL` type.
pub(crate) fn kind_of(kind: &Type) -> Option<Kind> {
    match *kind {
        Type::INT2 | Type::INT4 | Type::INT8 | Type::BOOL => Some(Kind::Int),
        Type::BYTEA => Some(Kind::Bytes),
        Type::TEXT | Type::VARCHAR => Some(Kind::Text),
        _ => None,
    }
}

#[derive(Debug, thiserror::Error)]
enum ValueError {
    #[error("a number that does not fit {0}")]
    Range(Type),
    #[error("a text with U+0000, which PostgreSQL cannot hold")]
    ZeroCharacter,
    #[error("a value that is no {0}")]
    Kind(Type),
}

impl FromSqlite for Value {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Int(number),
            ValueRef::Text(_) => Self::Text(value.as_str()?.to_owned()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_owned()),
            ValueRef::Real(_) => return Err(rusqlite::types::FromSqlError::InvalidType),
        })
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl<'raw> FromSql<'raw> for Value {
    fn from_sql(kind: &Type, raw: &'raw [u8]) -> Result<Self, AnyError> {
        Ok(match *kind {
            Type::INT2 => Self::Int(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Self::Int(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Self::Int(i64::from_sql(kind, raw)?),
            Type::BOOL => Self::Int(bool::from_sql(kind, raw)?.into()),
            Type::BYTEA => Self::Bytes(raw.to_owned()),
            _ => Self::Text(String::from_sql(kind, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, AnyError> {
        Ok(Self::Null)
    }

    fn accepts(kind: &Type) -> bool {
        kind_of(kind).is_some()
    }
}

/// Shows no value, because it may be a secret.
impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Value")
    }
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        let out_of_range = |_| ValueError::Range(kind.clone());
        match (self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(number), &Type::INT2) => i16::try_from(*number)
                .map_err(out_of_range)?
                .to_sql(kind, out),
            (Self::Int(number), &Type::INT4) => i32::try_from(*number)
                .map_err(out_of_range)?
                .to_sql(kind, out),
            (Self::Int(number), &Type::INT8) => number.to_sql(kind, out),
            (Self::Int(number @ (0 | 1)), &Type::BOOL) => (*number == 1).to_sql(kind, out),
            (Self::Bytes(bytes), &Type::BYTEA) => bytes.to_sql(kind, out),
            (Self::Text(text), &Type::TEXT | &Type::VARCHAR) => {
                if text.contains('\0') {
                    return Err(ValueError::ZeroCharacter.into());
                }
                text.to_sql(kind, out)
            }
            _ => Err(ValueError::Kind(kind.clone()).into()),
        }
    }

    fn accepts(kind: &Type) -> bool {
        kind_of(kind).is_some()
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Converts a value to a `PostgreSQL` type and back.
    fn round_trip(value: &Value, kind: &Type) -> Result<Value, String> {
        let mut bytes = BytesMut::new();
        match value
            .to_sql(kind, &mut bytes)
            .map_err(|error| error.to_string())?
        {
            IsNull::Yes => Value::from_sql_null(kind),
            IsNull::No => Value::from_sql(kind, &bytes),
        }
        .map_err(|error| error.to_string())
    }

    proptest! {
        #[test]
        fn numbers_survive_every_type_that_can_store_them(number: i64) {
            for (kind, fits) in [
                (Type::INT2, i16::try_from(number).is_ok()),
                (Type::INT4, i32::try_from(number).is_ok()),
                (Type::INT8, true),
                (Type::BOOL, matches!(number, 0 | 1)),
            ] {
                let passed = round_trip(&Value::Int(number), &kind);
                prop_assert_eq!(passed == Ok(Value::Int(number)), fits);
            }
        }

        #[test]
        fn bytes_and_texts_survive(bytes: Vec<u8>, text in "[^\u{0}]*") {
            prop_assert!(round_trip(&Value::Bytes(bytes.clone()), &Type::BYTEA) == Ok(Value::Bytes(bytes)));
            prop_assert!(round_trip(&Value::Text(text.clone()), &Type::TEXT) == Ok(Value::Text(text)));
        }
    }

    #[test]
    fn a_value_of_the_wrong_size_or_kind_is_refused() {
        for (name, value, kind, reason) in [
            ("a small number", Value::Int(40_000), Type::INT2, "fit int2"),
            ("truth", Value::Int(2), Type::BOOL, "no bool"),
            ("zero", Value::Text("a\0b".into()), Type::TEXT, "U+0000"),
            ("kind", Value::Text("1".into()), Type::INT8, "no int8"),
            ("kind", Value::Int(1), Type::TEXT, "no text"),
        ] {
            let Err(error) = round_trip(&value, &kind) else {
                panic!("{name} was taken");
            };
            assert!(error.contains(reason), "{name}: {error}");
        }
        assert!(round_trip(&Value::Null, &Type::INT2) == Ok(Value::Null));
    }
}
