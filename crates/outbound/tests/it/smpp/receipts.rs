//! Receipts: in any form and at any time, each is stored before it is acknowledged, under the reference of its part.

use std::sync::Arc;

use domain::Outcome;
use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{CarrierRef, Receipt as StoredReceipt};
use domain::{Code, Timestamp};
use outbound::SmppSettings;
use outbound::smpp::{BindMode, IdForm};
use testkit::smsc::{Action, Answer, IdFormat, Receipt, ReceiptShape, Smsc};

use super::setup::{Sink, connected, queued, settings, start, submit, taken, until_up};

fn stored(reference: &str, outcome: Outcome) -> StoredReceipt {
    StoredReceipt {
        of: CarrierRef {
            carrier: "alpha".to_owned(),
            reference: reference.to_owned(),
        },
        to: None,
        outcome,
        report: None,
        network: None,
        at: Timestamp::UNIX_EPOCH,
    }
}

/// Waits for this many answers to receipts and returns their statuses.
async fn answered(smsc: &Smsc, count: usize) -> Vec<u32> {
    smsc.wait_until("receipts are answered", |log| log.answers.len() >= count)
        .await;
    let answers = smsc.log().answers;
    answers.iter().map(|answer| answer.status).collect()
}

#[tokio::test]
async fn a_receipt_finds_its_part_in_every_combination_of_id_forms() {
    for (answers, receipts) in [
        (IdFormat::Decimal, IdFormat::Decimal),
        (IdFormat::Hex, IdFormat::Hex),
        (IdFormat::Hex, IdFormat::Decimal),
        (IdFormat::Decimal, IdFormat::Hex),
    ] {
        let form = |ids| match ids {
            IdFormat::Decimal => IdForm::Decimal,
            IdFormat::Hex => IdForm::Hex,
        };
        let smsc = Smsc::builder().id_format(answers).start();
        let chosen = SmppSettings {
            answer_ids: form(answers),
            receipt_ids: form(receipts),
            ..settings(&smsc)
        };
        let (carrier, sink) = connected(chosen).await;
        let answer = submit(&carrier, &queued(1, "Hi")).await;
        assert_eq!(answer, taken(1_000_000), "{answers:?}");
        for shape in [ReceiptShape::Text, ReceiptShape::Tlvs, ReceiptShape::Both] {
            let receipt = Receipt::delivered(receipts.write(1_000_000)).shape(shape);
            smsc.send(&receipt).expect("a link accepts it");
        }
        let expected = vec![stored("1000000", Outcome::Delivered); 3];
        assert_eq!(sink.wait_for(3).await, expected, "{receipts:?}");
        assert_eq!(answered(&smsc, 3).await, [0; 3]);
    }
}

#[tokio::test]
async fn failures_come_with_their_reason() {
    let smsc = Smsc::start();
    let (_carrier, sink) = connected(settings(&smsc)).await;
    let failed = |number| Outcome::Failed(Code::new(number).expect("in the catalogue"));
    for (shape, err, expected) in [
        (ReceiptShape::Text, 1, failed(40)),
        (ReceiptShape::Tlvs, 27, failed(43)),
        (ReceiptShape::Both, 0, failed(8)),
    ] {
        let before = sink.received().len();
        smsc.send(&Receipt::failed("7", err).shape(shape));
        let received = sink.wait_for(before + 1).await;
        assert_eq!(received.last(), Some(&stored("7", expected)), "{shape:?}");
    }
}

#[tokio::test]
async fn receipts_are_stored_when_early_duplicate_on_another_link_or_after_a_refusal() {
    let smsc = Smsc::builder()
        .on_submit(|submit| {
            let receipt = Receipt::delivered(submit.id().to_string());
            match submit.number {
                0 => vec![Action::Receipt(receipt), Action::Answer],
                1 => vec![
                    Action::Answer,
                    Action::Receipt(receipt.clone()),
                    Action::Receipt(receipt),
                ],
                2 => vec![Action::Answer, Action::ReceiptOnOtherConnection(receipt)],
                _ => vec![Action::Refuse(0x0B), Action::Receipt(receipt)],
            }
        })
        .start();
    let two = SmppSettings {
        binds: 2,
        ..settings(&smsc)
    };
    let (carrier, sink) = connected(two).await;
    for id in 1..=4 {
        submit(&carrier, &queued(id, "Hi")).await;
    }
    assert_eq!(answered(&smsc, 5).await, [0; 5]);
    let mut references: Vec<String> = sink
        .received()
        .into_iter()
        .map(|receipt| receipt.of.reference)
        .collect();
    references.sort();
    let expected = ["1000000", "1000001", "1000001", "1000002", "1000003"];
    assert_eq!(references, expected);
    let log = smsc.log();
    let connections = log.answers.iter().map(|answer| answer.connection);
    assert!(
        connections.clone().min() != connections.max(),
        "each link answers its own receipts"
    );
}

#[tokio::test]
async fn a_receipt_is_acknowledged_only_once_it_is_stored() {
    let smsc = Smsc::start();
    let sink = Sink::waiting();
    let carrier = start(settings(&smsc), &sink);
    until_up(&carrier).await;
    let late = smsc
        .send(&Receipt::delivered("7"))
        .expect("a link accepts it");
    // This one is not stored, so its answer may come at once; it shows that the first receipt was read before.
    let early = smsc
        .send(&Receipt::enroute("8"))
        .expect("a link accepts it");
    assert_eq!(answered(&smsc, 1).await, [0]);
    assert_eq!(smsc.log().answers[0].sequence, early);
    assert!(sink.received().is_empty());
    sink.resume();
    answered(&smsc, 2).await;
    let Answer {
        sequence, status, ..
    } = smsc.log().answers[1];
    assert_eq!((sequence, status), (late, 0));
    assert_eq!(sink.received(), [stored("7", Outcome::Delivered)]);
}

#[tokio::test]
async fn receipts_that_cannot_be_stored_stay_with_the_carrier() {
    let smsc = Smsc::start();
    let sink = Sink::refusing(2);
    let carrier = start(settings(&smsc), &sink);
    until_up(&carrier).await;
    for tries in 1..=3 {
        smsc.send(&Receipt::delivered("7"));
        answered(&smsc, tries).await;
    }
    assert_eq!(answered(&smsc, 3).await, [0x64, 0x64, 0]);
    assert_eq!(sink.received(), [stored("7", Outcome::Delivered)]);
}

#[tokio::test]
async fn only_final_receipts_are_stored() {
    let smsc = Smsc::start();
    let (_carrier, sink) = connected(settings(&smsc)).await;
    let cases = [
        ("on its way", Receipt::enroute("7"), 0),
        ("intermediate", Receipt::delivered("7").esm_class(0x20), 0),
        (
            "without an ID",
            Receipt::delivered("").shape(ReceiptShape::Text),
            0,
        ),
        ("a text", Receipt::message("Yes, please"), 0),
        ("an empty text", Receipt::message(""), 0),
        (
            "a text that reads as a receipt",
            Receipt::message("id:7 sub:001 dlvrd:001 stat:DELIVRD err:000"),
            0,
        ),
        ("a text to nowhere", Receipt::message("Hello").to("x"), 0x65),
    ];
    for (count, (name, receipt, status)) in (1..).zip(cases) {
        smsc.send(&receipt).expect("a link accepts it");
        assert_eq!(answered(&smsc, count).await[count - 1], status, "{name}");
    }
    assert!(sink.received().is_empty());
    assert_eq!(sink.texts().len(), 3);
}

#[tokio::test]
async fn unmarked_receipts_are_accepted_if_configured() {
    let smsc = Smsc::start();
    let unmarked = SmppSettings {
        unmarked_receipts: true,
        ..settings(&smsc)
    };
    let (_carrier, sink) = connected(unmarked).await;
    smsc.send(&Receipt::message("Yes, please"));
    smsc.send(&Receipt::message("id:7 stat:DELIVRD"));
    assert_eq!(sink.wait_for(1).await, [stored("7", Outcome::Delivered)]);
    assert_eq!(answered(&smsc, 2).await, [0, 0]);
    assert_eq!(sink.texts().len(), 1);
}

#[tokio::test]
async fn a_receipt_has_its_recipient_unless_that_is_switched_off() {
    for (match_recipient, from, expected) in [
        (true, "37120000001", NumberTail::of_address("37120000001")),
        (true, "Acme", None),
        (false, "37120000001", None),
    ] {
        let smsc = Smsc::start();
        let chosen = SmppSettings {
            match_recipient,
            ..settings(&smsc)
        };
        let (_carrier, sink) = connected(chosen).await;
        smsc.send(&Receipt::delivered("007").from(from));
        let received = sink.wait_for(1).await;
        assert_eq!(received[0].to, expected, "{from} {match_recipient}");
        assert_eq!(received[0].of.reference, "7");
    }
}

#[tokio::test]
async fn odd_tlvs_after_a_receipt_do_no_harm() {
    let smsc = Smsc::start();
    let (carrier, sink) = connected(settings(&smsc)).await;
    let cases: [(&str, &[u8]); 3] = [
        ("a TLV of a vendor", &[0x14, 0x03, 0, 2, 0xFF, 0xFE]),
        ("a TLV twice", &[0x04, 0x27, 0, 1, 5]),
        ("a TLV that ends too early", &[0x14, 0x03, 0, 9, 1]),
    ];
    for (count, (name, more)) in (1..).zip(cases) {
        smsc.send(&Receipt::delivered("7").then(more));
        assert_eq!(answered(&smsc, count).await[count - 1], 0, "{name}");
    }
    assert_eq!(sink.received(), vec![stored("7", Outcome::Delivered); 3]);
    assert_eq!(submit(&carrier, &queued(1, "Hi")).await, taken(1_000_000));
}

#[tokio::test]
async fn a_pair_gets_its_receipts_on_the_receiver_link() {
    let smsc = Smsc::builder()
        .on_submit(|submit| {
            let receipt = Receipt::delivered(submit.id().to_string());
            vec![Action::Answer, Action::ReceiptOnOtherConnection(receipt)]
        })
        .start();
    let pair = SmppSettings {
        bind: BindMode::Pair,
        ..settings(&smsc)
    };
    let (carrier, sink): (_, Arc<Sink>) = connected(pair).await;
    submit(&carrier, &queued(1, "Hi")).await;
    let received = sink.wait_for(1).await;
    let expected = StoredReceipt {
        to: NumberTail::of_address("37120000001"),
        ..stored("1000000", Outcome::Delivered)
    };
    assert_eq!(received, [expected]);
    answered(&smsc, 1).await;
    let log = smsc.log();
    assert_ne!(log.answers[0].connection, log.submits[0].connection);
}
