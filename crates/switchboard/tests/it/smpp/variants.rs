//! What SMSCs want differently: long texts in other forms, IDs in other digits, receipts in other places.

use serde_json::json;
use testkit::Backend;
use testkit::node::{NodeSmsc, NodeSubmit};
use testkit::receiver::Receiver;

use super::{carrier, send, start, wait_for_submits};
use crate::chain::reported;

/// Three parts of the GSM alphabet.
fn long_text() -> String {
    "0123456789".repeat(31)
}

/// What an SMSC gets of [`long_text`] with these settings. It was reported once, and it counts as three parts.
fn sent_with(settings: &str, parts: usize) -> Vec<NodeSubmit> {
    let smsc = NodeSmsc::start(&[]);
    let service = start(Backend::Sqlite, carrier("alpha", smsc.addr(), settings));
    let receiver = Receiver::start();
    let id = send(&service, &receiver, &json!({"message": long_text()}));
    assert_eq!(reported(&receiver, 1), [(id.clone(), 1, 0)], "{settings}");
    let status = service.get(&format!("/sms/status/{id}")).json();
    assert_eq!(status["parts"], 3, "{settings}: {status}");
    let submits = wait_for_submits(&smsc, parts);
    assert_eq!(submits.len(), parts, "{settings}: {submits:?}");
    submits
}

#[test]
fn long_texts_leave_with_tlvs_of_their_parts() {
    let submits = sent_with("long = \"sar\"", 3);
    let text = long_text();
    let texts = [&text[..153], &text[153..306], &text[306..]];
    let reference = submits[0].sar_msg_ref_num;
    assert!(reference.is_some());
    for ((number, text), submit) in (1..).zip(texts).zip(submits) {
        assert_eq!(submit.text.as_deref(), Some(text), "part {number}");
        assert_eq!(submit.short_message.len(), 2 * text.len(), "and no header");
        assert_eq!((submit.esm_class, submit.data_coding), (0, 0));
        let tlvs = (
            submit.sar_msg_ref_num,
            submit.sar_total_segments,
            submit.sar_segment_seqnum,
        );
        assert_eq!(tlvs, (reference, Some(3), Some(number)));
        assert_eq!(submit.message_payload, None);
    }
}

#[test]
fn long_texts_leave_whole() {
    let submit = sent_with("long = \"payload\"", 1).remove(0);
    assert_eq!(submit.payload_text, Some(long_text()));
    assert_eq!(
        submit.message_payload.map(|octets| octets.len()),
        Some(2 * 310)
    );
    assert_eq!(submit.short_message, "");
    assert_eq!((submit.esm_class, submit.data_coding), (0, 0));
    assert_eq!(submit.sar_total_segments, None);
}

/// Receipts find their messages, whichever way the two are written.
#[test]
fn receipts_find_their_messages() {
    let cases: [(&str, &[&str], &str); 5] = [
        ("in TLVs alone", &["--receipts", "tlv"], ""),
        ("in both", &["--receipts", "both"], ""),
        (
            "hexadecimal answers, decimal receipts",
            &["--ids", "hex", "--receipt-ids", "decimal"],
            "answer_id = \"hex\"\nreceipt_id = \"decimal\"",
        ),
        (
            "decimal answers, hexadecimal receipts in TLVs",
            &[
                "--ids",
                "decimal",
                "--receipt-ids",
                "hex",
                "--receipts",
                "tlv",
            ],
            "answer_id = \"decimal\"\nreceipt_id = \"hex\"",
        ),
        (
            "one connection to send, one to receive",
            &[],
            "bind = \"pair\"",
        ),
    ];
    for (case, options, settings) in cases {
        let smsc = NodeSmsc::start(options);
        let service = start(Backend::Sqlite, carrier("alpha", smsc.addr(), settings));
        let receiver = Receiver::start();
        let id = send(&service, &receiver, &json!({}));
        assert_eq!(reported(&receiver, 1), [(id, 1, 0)], "{case}");
    }
}
