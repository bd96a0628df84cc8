//! Fuzzes the parser of receipts in texts and TLVs. The first five octets choose the fields, the rest is the text.
//!
//! - The ID of a final receipt is not blank, and comes from the TLV or the text.
//! - The text of the message itself, after `text:`, never changes the result.
//! - A handset cannot forge a receipt: a final receipt is marked or has a TLV, unless the carrier sends unmarked ones.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outbound::smpp::receipt::{Parsed, DeliveryFields, parse};

fn check(fields: &DeliveryFields<'_>) -> Parsed {
    let parsed = parse(fields);
    if let Parsed::Final { id, .. } = &parsed {
        assert!(
            !id.trim_matches(|c: char| c == '\0' || c.is_whitespace())
                .is_empty()
        );
    }
    let is_marked = fields.esm_class & 0x3C == 0x04 || fields.id.is_some();
    if !is_marked && !fields.may_be_unmarked {
        assert!(matches!(parsed, Parsed::Message | Parsed::Intermediate));
    }
    parsed
}

fuzz_target!(|input: &[u8]| {
    let Some((&[flags, esm_class, state, network, at], rest)) = input.split_first_chunk() else {
        return;
    };
    let (before, behind) = rest.split_at(usize::from(at).min(rest.len()));
    let error = [network, 0, state];
    let fields = DeliveryFields {
        esm_class,
        text: rest,
        id: (flags & 1 != 0).then_some(before),
        state: (flags & 2 != 0).then_some(state),
        network_error: (flags & 4 != 0).then_some(&error[..usize::from(flags >> 6)]),
        may_be_unmarked: flags & 8 != 0,
    };
    if let Parsed::Final { id, .. } = check(&fields)
        && fields.id.is_none()
        && let Ok(text) = str::from_utf8(rest)
        && !text.starts_with('\0')
    {
        assert!(text.contains(&id), "an ID from nowhere: {id:?}");
    }
    // A text whose first octet is 0 is decoded as UCS-2.
    let (Ok(before), Ok(behind)) = (str::from_utf8(before), str::from_utf8(behind)) else {
        return;
    };
    if before.starts_with('\0') {
        return;
    }
    let short = format!("{before} text:");
    let long = format!("{before} text:{behind}");
    let of = |text| DeliveryFields {
        id: None,
        text,
        ..fields
    };
    assert_eq!(check(&of(short.as_bytes())), check(&of(long.as_bytes())));
});
