//! Maps the error numbers of networks to our codes.
//!
//! One table for `err` in texts and for the TLV `network_error_code`. It has the numbers that most carriers pass
//! through from the network: the errors of GSM's MAP (1 to 72), and from 128 on the failure causes of a handset or its
//! service centre. Other numbers map to code 8.
//!
//! The table contains no code with a refund, because the network accepted the message.

use domain::Code;

use crate::smpp::code;

/// The network's number, its meaning, and our code.
const CAUSES: &[(u16, &str, u16)] = &[
    (1, "unknown subscriber", 40),
    (5, "unidentified subscriber", 44),
    (6, "absent subscriber, as SMS has it", 43),
    (7, "unknown equipment", 3),
    (8, "roaming not allowed", 17),
    (9, "illegal subscriber", 1),
    (10, "bearer service not provisioned", 42),
    (11, "teleservice not provisioned", 42),
    (12, "illegal equipment", 3),
    (13, "call barred", 41),
    (15, "rejected by a closed user group", 41),
    (20, "service incompatible with the subscription", 42),
    (21, "facility not supported", 9),
    (27, "absent subscriber", 43),
    (28, "incompatible terminal", 6),
    (31, "busy with another message", 7),
    // Usually the memory is full; the exact reason is not passed on.
    (32, "the handset did not take the message", 4),
    // This list is full only if the subscriber has been away for long.
    (33, "message waiting list full", 43),
    (34, "system failure", 8),
    (35, "data missing", 8),
    (36, "unexpected data value", 8),
    (44, "number changed", 40),
    (45, "busy subscriber", 7),
    (46, "no reply of the subscriber", 43),
    (51, "resource limitation", 11),
    (71, "unknown alphabet", 9),
    (128, "telematic interworking not supported", 9),
    (144, "data coding scheme not supported", 9),
    (145, "message class not supported", 9),
    (176, "kind of message not supported", 9),
    (192, "service centre busy", 11),
    (193, "no subscription with the service centre", 42),
    (194, "service centre failed", 8),
    (195, "invalid address", 40),
    (196, "destination barred", 41),
    (208, "SIM full", 4),
    (209, "SIM cannot store messages", 6),
    (210, "error in the handset", 5),
    (211, "memory full", 4),
    (212, "SIM toolkit busy", 7),
    (213, "SIM download failed", 5),
];

/// Types of networks with other numbers: ANSI-136, IS-95, ANSI-41, and SMPP itself.
const OTHER_NETWORKS: [u8; 6] = [1, 2, 4, 5, 6, 7];

fn code_for_number(number: u16) -> Option<Code> {
    let found = CAUSES.binary_search_by_key(&number, |(known, ..)| *known);
    found.ok().map(|index| code(CAUSES[index].2))
}

pub(crate) fn number_for_code(code: Code) -> Option<u16> {
    let found = CAUSES.iter().find(|(_, _, ours)| *ours == code.number());
    found.map(|(number, ..)| *number)
}

/// The code of an `err` in a text. It is decimal, unless it looks like hexadecimal.
pub(super) fn code_from_text(err: &str) -> Option<Code> {
    let hex = err.strip_prefix("0x").or_else(|| err.strip_prefix("0X"));
    let number = match hex {
        Some(digits) => u16::from_str_radix(digits, 16),
        None if err.bytes().all(|digit| digit.is_ascii_digit()) => err.parse(),
        None => u16::from_str_radix(err, 16),
    };
    number.ok().and_then(code_for_number)
}

/// The code of the TLV `network_error_code`: one octet for the type of network, two for the number.
pub(super) fn code_from_tlv(value: &[u8]) -> Option<Code> {
    let &[network, high, low] = value else {
        return None;
    };
    if OTHER_NETWORKS.contains(&network) {
        return None;
    }
    code_for_number(u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_table_ascends_and_charges_what_a_network_took() {
        assert!(CAUSES.is_sorted_by(|one, next| one.0 < next.0));
        for (number, words, ours) in CAUSES {
            let code = Code::new(*ours).expect(words);
            assert!(!code.is_refunded(), "{number} {words}");
            assert_eq!(code_for_number(*number), Some(code));
        }
    }

    #[test]
    fn an_err_is_read_as_it_is_written() {
        for (err, expected) in [
            ("001", Some(40)),
            ("1", Some(40)),
            ("006", Some(43)),
            ("027", Some(43)),
            ("0x1B", Some(43)),
            ("1B", Some(43)),
            ("01b", Some(43)),
            ("211", Some(4)),
            ("000", None),
            ("999", None),
            ("99999999", None),
            ("E_FULL", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(code_from_text(err), expected.map(code), "{err:?}");
        }
    }

    #[test]
    fn a_tlv_counts_where_its_network_has_these_numbers() {
        for (value, expected) in [
            (&[3, 0, 1][..], Some(40)),
            (&[0, 0, 27], Some(43)),
            (&[8, 0, 211], Some(4)),
            (&[3, 0, 0], None),
            (&[3, 1, 1], None),
            (&[1, 0, 1], None),
            (&[3, 1], None),
            (&[3, 0, 1, 0], None),
            (&[], None),
        ] {
            assert_eq!(code_from_tlv(value), expected.map(code), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn any_err_is_read_without_panic(err: String) {
            code_from_text(&err);
        }
    }
}
