//! How the receipts of an SMPP user are written.

use std::str::FromStr;

use crate::quoted::Quoted;

/// Makes an enum whose values have a name, for the command line and the database.
macro_rules! option {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $($(#[$value_doc])* $value,)*
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)*
                }
            }
        }

        impl FromStr for $name {
            type Err = UnknownReceiptOption;

            fn from_str(text: &str) -> Result<Self, UnknownReceiptOption> {
                let found = Self::ALL.iter().copied().find(|value| value.name() == text);
                found.ok_or_else(|| UnknownReceiptOption {
                    text: text.to_owned(),
                    known: [$($text,)*].join(" or "),
                })
            }
        }
    };
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not known here; give {known}", Quoted(.text))]
pub struct UnknownReceiptOption {
    text: String,
    known: String,
}

option! {
    /// How a receipt writes its dates, always in UTC.
    ReceiptDate {
        /// `YYMMDDhhmm`
        #[default]
        Minutes = "minutes",
        /// `YYMMDDhhmmss`
        Seconds = "seconds",
    }
}

option! {
    /// How `submit_sm_resp`, receipts and `query_sm` write the ID of a message.
    ReceiptId {
        #[default]
        Decimal = "decimal",
        /// Lower-case hexadecimal digits without leading zeros.
        Hex = "hex",
    }
}

option! {
    /// What the field `err` of a receipt's text contains.
    ReceiptErrorField {
        /// The code of the service, three digits.
        #[default]
        Code = "code",
        /// Always `000`, for clients that take any other value for a failure of their own.
        Zero = "zero",
    }
}

/// How the receipts of one user are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiptFormat {
    pub date: ReceiptDate,
    pub id: ReceiptId,
    pub error: ReceiptErrorField,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_by_their_names() {
        for date in ReceiptDate::ALL {
            assert_eq!(date.name().parse(), Ok(*date));
        }
        for id in ReceiptId::ALL {
            assert_eq!(id.name().parse(), Ok(*id));
        }
        for error in ReceiptErrorField::ALL {
            assert_eq!(error.name().parse(), Ok(*error));
        }
        let error = "octal".parse::<ReceiptId>().expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "'octal' is not known here; give decimal or hex"
        );
    }
}
