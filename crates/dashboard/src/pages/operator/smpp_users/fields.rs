//! The fields of an SMPP user's options, which the forms to create and to change one have.

use std::str::FromStr;

use domain::access::{AccessLimits, AllowedSenders};
use domain::smpp_user::{
    BindKind, BindKinds, ReceiptDate, ReceiptErrorField, ReceiptFormat, ReceiptId, SmppLimits,
    SmppUserOptions,
};
use domain::{AllowList, Originator};

use crate::kit::form_input::FormInput;

const MAX_BINDS: &str = "max_binds";
const MAX_PER_SECOND: &str = "max_per_second";
const NETWORKS: &str = "networks";
const SENDERS: &str = "senders";
const COUNTRIES: &str = "countries";
const BINDS: &str = "binds";
const RECEIPT_DATE: &str = "receipt_date";
const RECEIPT_ID: &str = "receipt_id";
const RECEIPT_ERROR: &str = "receipt_error";
pub(super) const OPTIONS: [&str; 9] = [
    MAX_BINDS,
    MAX_PER_SECOND,
    NETWORKS,
    SENDERS,
    COUNTRIES,
    BINDS,
    RECEIPT_DATE,
    RECEIPT_ID,
    RECEIPT_ERROR,
];

/// What the forms offer to choose from.
pub(super) struct Choices {
    pub(super) binds: [BindKind; 3],
    /// Each receipt option: its field, label and hint, and its values.
    pub(super) receipts: [ReceiptChoice; 3],
}

pub(super) struct ReceiptChoice {
    pub(super) field: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) values: Vec<&'static str>,
}

impl Choices {
    pub(super) fn new() -> Self {
        let dates = ReceiptDate::ALL.iter().map(|date| date.name());
        let ids = ReceiptId::ALL.iter().map(|id| id.name());
        let errors = ReceiptErrorField::ALL.iter().map(|error| error.name());
        Self {
            binds: BindKind::ALL,
            receipts: [
                ReceiptChoice {
                    field: RECEIPT_DATE,
                    label: "Dates in receipts",
                    hint: "minutes: YYMMDDhhmm, seconds: YYMMDDhhmmss; in UTC.",
                    values: dates.collect(),
                },
                ReceiptChoice {
                    field: RECEIPT_ID,
                    label: "Message IDs",
                    hint: "In answers and in receipts.",
                    values: ids.collect(),
                },
                ReceiptChoice {
                    field: RECEIPT_ERROR,
                    label: "Error field of receipts",
                    hint: "code: the code of the service; zero: always 000.",
                    values: errors.collect(),
                },
            ],
        }
    }
}

/// The fields with the options of a new user.
pub(super) fn defaults() -> Vec<(&'static str, String)> {
    filled(&SmppUserOptions::default())
}

/// The fields with these options.
pub(super) fn filled(options: &SmppUserOptions) -> Vec<(&'static str, String)> {
    let (limits, access, receipts) = (&options.limits, &options.access_limits, options.receipts);
    let number = |limit: Option<u32>| limit.map(|limit| limit.to_string()).unwrap_or_default();
    let senders = access.senders.as_slice().iter();
    let senders: Vec<String> = senders.map(ToString::to_string).collect();
    vec![
        (MAX_BINDS, number(limits.max_binds)),
        (MAX_PER_SECOND, number(limits.max_per_second)),
        (NETWORKS, options.allow.to_string().replace(' ', "\n")),
        (SENDERS, senders.join("\n")),
        (COUNTRIES, access.countries.to_string()),
        (BINDS, limits.binds.to_string()),
        (RECEIPT_DATE, receipts.date.name().to_owned()),
        (RECEIPT_ID, receipts.id.name().to_owned()),
        (RECEIPT_ERROR, receipts.error.name().to_owned()),
    ]
}

/// Reads the fields. Invalid ones get a problem.
pub(super) fn read(input: &mut FormInput) -> SmppUserOptions {
    let networks = input.text(NETWORKS).replace([',', ';'], " ");
    let allow = networks.parse::<AllowList>().unwrap_or_else(|problem| {
        input.refuse(NETWORKS, problem);
        AllowList::default()
    });
    let senders = input.text(SENDERS).lines().map(str::trim);
    let senders: Result<Vec<Originator>, _> = senders
        .filter(|sender| !sender.is_empty())
        .map(Originator::parse_approved)
        .collect();
    let senders = senders.unwrap_or_else(|problem| {
        input.refuse(SENDERS, problem);
        Vec::new()
    });
    let countries = input.text(COUNTRIES).parse().unwrap_or_else(|problem| {
        input.refuse(COUNTRIES, problem);
        domain::billing::Countries::default()
    });
    SmppUserOptions {
        allow,
        access_limits: AccessLimits {
            senders: AllowedSenders::new(senders),
            countries,
        },
        limits: SmppLimits {
            max_binds: read_limit(input, MAX_BINDS),
            max_per_second: read_limit(input, MAX_PER_SECOND),
            binds: read_binds(input),
        },
        receipts: ReceiptFormat {
            date: read_choice(input, RECEIPT_DATE),
            id: read_choice(input, RECEIPT_ID),
            error: read_choice(input, RECEIPT_ERROR),
        },
    }
}

/// No tick means all kinds, because a user that may not bind at all is useless.
fn read_binds(input: &mut FormInput) -> BindKinds {
    let Some(names) = input.given(BINDS) else {
        return BindKinds::all();
    };
    names.parse().unwrap_or_else(|problem| {
        input.refuse(BINDS, problem);
        BindKinds::all()
    })
}

fn read_choice<T>(input: &mut FormInput, name: &'static str) -> T
where
    T: FromStr + Default,
    T::Err: std::fmt::Display,
{
    let chosen = input.given(name).map(str::parse::<T>).transpose();
    match chosen {
        Ok(chosen) => chosen.unwrap_or_default(),
        Err(problem) => {
            input.refuse(name, problem);
            T::default()
        }
    }
}

/// An empty field and 0 stand for no limit.
fn read_limit(input: &mut FormInput, name: &'static str) -> Option<u32> {
    let number = input.given(name).map(str::parse::<u32>).transpose();
    let number = number.unwrap_or_else(|_| {
        input.refuse(name, "Give a whole number, or nothing for no limit");
        None
    });
    number.filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_checked() {
        for (field, text, is_refused) in [
            (NETWORKS, "192.0.2.1, 2001:db8::/32", false),
            (NETWORKS, "here", true),
            (SENDERS, "Acme Inc.\r\n\r\n+37120000001", false),
            (SENDERS, "A name that is too long", true),
            (COUNTRIES, "LV, ee", false),
            (COUNTRIES, "Latvia", true),
            (MAX_BINDS, "0", false),
            (MAX_PER_SECOND, "100", false),
            (MAX_PER_SECOND, "-1", true),
            (BINDS, "", false),
            (BINDS, "receiver transmitter", false),
            (BINDS, "both", true),
            (RECEIPT_DATE, "seconds", false),
            (RECEIPT_ID, "octal", true),
            (RECEIPT_ERROR, "", false),
        ] {
            let mut input = FormInput::with_defaults(vec![(field, text.to_owned())]);
            read(&mut input);
            assert_eq!(input.problem(field).is_some(), is_refused, "{field} {text}");
            assert_eq!(input.is_refused(), is_refused, "{field} {text}");
        }
    }

    #[test]
    fn filled_fields_are_read_as_they_were() {
        let narrow = SmppUserOptions {
            allow: "192.0.2.0/24 2001:db8::/32".parse().expect("networks"),
            access_limits: AccessLimits {
                senders: "Acme Inc.\n37120000001".parse().expect("senders"),
                countries: "EE LV".parse().expect("countries"),
            },
            limits: SmppLimits {
                max_binds: None,
                max_per_second: Some(50),
                binds: [BindKind::Receiver].into_iter().collect(),
            },
            receipts: ReceiptFormat {
                date: ReceiptDate::Seconds,
                id: ReceiptId::Hex,
                error: ReceiptErrorField::Zero,
            },
        };
        for options in [narrow, SmppUserOptions::default()] {
            let mut input = FormInput::with_defaults(filled(&options));
            assert_eq!(read(&mut input), options);
            assert!(!input.is_refused());
        }
    }
}
