//! What carriers bring: receipts as text and TLVs. The first five octets choose the fields, the rest is the text.
//!
//! - The ID of an end is not blank, and stands in the TLV or in the text.
//! - The text of the message itself, behind `text:`, never changes what a receipt says.
//! - A handset cannot write a receipt: without a mark or a TLV there is no end, unless the carrier may leave it out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outbound::smpp::receipt::{Reading, Report, read};

fn check(report: &Report<'_>) -> Reading {
    let reading = read(report);
    if let Reading::Final { id, .. } = &reading {
        assert!(
            !id.trim_matches(|c: char| c == '\0' || c.is_whitespace())
                .is_empty()
        );
    }
    let is_marked = report.esm_class & 0x3C == 0x04 || report.id.is_some();
    if !is_marked && !report.may_be_unmarked {
        assert!(matches!(reading, Reading::Message | Reading::Passing));
    }
    reading
}

fuzz_target!(|input: &[u8]| {
    let Some((&[flags, esm_class, state, network, at], rest)) = input.split_first_chunk() else {
        return;
    };
    let (before, behind) = rest.split_at(usize::from(at).min(rest.len()));
    let error = [network, 0, state];
    let report = Report {
        esm_class,
        text: rest,
        id: (flags & 1 != 0).then_some(before),
        state: (flags & 2 != 0).then_some(state),
        network_error: (flags & 4 != 0).then_some(&error[..usize::from(flags >> 6)]),
        may_be_unmarked: flags & 8 != 0,
    };
    if let Reading::Final { id, .. } = check(&report)
        && report.id.is_none()
        && let Ok(text) = str::from_utf8(rest)
        && !text.starts_with('\0')
    {
        assert!(text.contains(&id), "an ID from nowhere: {id:?}");
    }
    // A text whose first octet is 0 is UCS-2, which is another text.
    let (Ok(before), Ok(behind)) = (str::from_utf8(before), str::from_utf8(behind)) else {
        return;
    };
    if before.starts_with('\0') {
        return;
    }
    let short = format!("{before} text:");
    let long = format!("{before} text:{behind}");
    let of = |text| Report {
        id: None,
        text,
        ..report
    };
    assert_eq!(check(&of(short.as_bytes())), check(&of(long.as_bytes())));
});
