//! Variants of SMPP: forms of long texts, notations of IDs, places of receipts.

use serde_json::json;
use testkit::Backend;
use testkit::nodejs_smsc::{NodeJsSmsc, NodeJsSubmit};
use testkit::receiver::Receiver;

use super::{carrier, send, start, wait_for_submits};
use crate::chain::wait_for_reported_states;

/// A text of three parts in the GSM alphabet.
fn long_text() -> String {
    "0123456789".repeat(31)
}

/// Sends [`long_text`] with these settings and returns what the SMSC gets. The message counts as three parts and is
/// reported once.
fn send_with_settings(settings: &str, parts: usize) -> Vec<NodeJsSubmit> {
    let smsc = NodeJsSmsc::start(&[]);
    let service = start(Backend::Sqlite, carrier("alpha", smsc.addr(), settings));
    let receiver = Receiver::start();
    let id = send(&service, &receiver, &json!({"message": long_text()}));
    assert_eq!(
        wait_for_reported_states(&receiver, 1),
        [(id.clone(), 1, 0)],
        "{settings}"
    );
    let status = service.get(&format!("/sms/status/{id}")).json();
    assert_eq!(status["parts"], 3, "{settings}: {status}");
    let submits = wait_for_submits(&smsc, parts);
    assert_eq!(submits.len(), parts, "{settings}: {submits:?}");
    submits
}

#[test]
fn long_texts_are_sent_with_sar_tlvs() {
    let submits = send_with_settings("long = \"sar\"", 3);
    let text = long_text();
    let texts = [&text[..153], &text[153..306], &text[306..]];
    let reference = submits[0].sar_msg_ref_num;
    assert!(reference.is_some());
    for ((number, text), submit) in (1..).zip(texts).zip(submits) {
        assert_eq!(submit.text.as_deref(), Some(text), "part {number}");
        assert_eq!(
            submit.short_message.len(),
            2 * text.len(),
            "there is a header"
        );
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
fn long_texts_are_sent_as_message_payload() {
    let submit = send_with_settings("long = \"payload\"", 1).remove(0);
    assert_eq!(submit.payload_text, Some(long_text()));
    assert_eq!(
        submit.message_payload.map(|octets| octets.len()),
        Some(2 * 310)
    );
    assert_eq!(submit.short_message, "");
    assert_eq!((submit.esm_class, submit.data_coding), (0, 0));
    assert_eq!(submit.sar_total_segments, None);
}

#[test]
fn receipts_match_their_messages_in_all_variants() {
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
        let smsc = NodeJsSmsc::start(options);
        let service = start(Backend::Sqlite, carrier("alpha", smsc.addr(), settings));
        let receiver = Receiver::start();
        let id = send(&service, &receiver, &json!({}));
        assert_eq!(
            wait_for_reported_states(&receiver, 1),
            [(id, 1, 0)],
            "{case}"
        );
    }
}
