//! Messages as they are sent, and the results of the answers.

use std::time::{Duration, Instant};

use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::{Channel, Code, Timestamp};
use outbound::SmppSettings;
use outbound::smpp::{IdForm, LongText};
use testkit::smsc::{Action, IdFormat, Smsc, Submit};

use super::setup::{connected, queued, settings, submit, taken};

fn code(number: u16) -> Code {
    Code::new(number).expect("in the catalogue")
}

/// A `submit_sm` from `Acme` to `37120000513`, built by hand.
fn expected_pdu(sequence: u32, part: u8, text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let short_message = [&[0x05, 0x00, 0x03, 0x01, 0x03, part], &units[..]].concat();
    let length = u8::try_from(short_message.len()).expect("short");
    let body = [
        b"\0".as_slice(),         // service type
        b"\x05\x00Acme\0",        // alphanumeric
        b"\x01\x0137120000513\0", // international, telephone
        b"\x40\x00\x00",          // a header, no protocol, no priority
        b"\0",                    // at once
        b"000003000000000R\0",    // for three days
        b"\x01\x00\x08\x00",      // a receipt, no replacement, UCS-2, nothing predefined
        &[length],
        &short_message,
    ]
    .concat();
    let octets = u32::try_from(16 + body.len()).expect("short");
    let header = [octets, 0x0000_0004, 0, sequence].map(u32::to_be_bytes);
    [header.as_flattened(), &body].concat()
}

#[tokio::test]
async fn a_greek_text_with_an_emoji_has_the_expected_octets() {
    let smsc = Smsc::start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let [first, second, third] = [
        "α".repeat(66),
        "😀".to_owned() + &"β".repeat(65),
        "βγδ, τέλος".to_owned(),
    ];
    let text = format!("{first}{second}{third}");
    let answer = submit(&carrier, &queued(513, &text)).await;
    let ids = ["1000000", "1000001", "1000002"];
    assert_eq!(
        answer,
        CarrierAnswer::Taken(ids.map(str::to_owned).to_vec())
    );
    let octets: Vec<Vec<u8>> = smsc.log().submits.into_iter().map(|s| s.octets).collect();
    let expected = [
        expected_pdu(2, 1, &first),
        expected_pdu(3, 2, &second),
        expected_pdu(4, 3, &third),
    ];
    assert_eq!(octets, expected);
}

#[tokio::test]
async fn each_refusal_has_the_right_result() {
    let cases = [
        (0x01, CarrierAnswer::Refused(code(61))),
        (0x08, CarrierAnswer::NotNow(Code::SYSTEM_FAILURE)),
        (0x0A, CarrierAnswer::Refused(code(15))),
        (0x0B, CarrierAnswer::Refused(code(53))),
        (0x14, CarrierAnswer::NotNow(Code::THROTTLED)),
        (0x45, CarrierAnswer::NotNow(Code::SYSTEM_FAILURE)),
        (0x58, CarrierAnswer::NotNow(Code::THROTTLED)),
        (0x104, CarrierAnswer::Declined(code(60))),
        (0x4FF, CarrierAnswer::Declined(Code::UNKNOWN)),
    ];
    let statuses = cases.each_ref().map(|(status, _)| *status);
    let smsc = Smsc::builder()
        .on_submit(move |submit| {
            let id: usize = submit.destination.2[4..].parse().expect("the ID");
            vec![Action::Refuse(statuses[id - 1])]
        })
        .start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let long = "a".repeat(400);
    for (id, (status, expected)) in (1..).zip(cases) {
        let answer = submit(&carrier, &queued(id, &long)).await;
        assert_eq!(answer, expected, "{status:#X}");
    }
}

#[tokio::test]
async fn ids_are_normalised() {
    let smsc = Smsc::builder().id_format(IdFormat::Hex).start();
    let hex = SmppSettings {
        answer_ids: IdForm::Hex,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(hex).await;
    assert_eq!(submit(&carrier, &queued(1, "Hi")).await, taken(1_000_000));
    let (carrier, _) = connected(settings(&smsc)).await;
    let normal = CarrierAnswer::Taken(vec!["F4241".to_owned()]);
    assert_eq!(submit(&carrier, &queued(1, "Hi")).await, normal);
    let as_is = SmppSettings {
        answer_ids: IdForm::AsIs,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(as_is).await;
    let as_is = CarrierAnswer::Taken(vec!["00000F4242".to_owned()]);
    assert_eq!(submit(&carrier, &queued(1, "Hi")).await, as_is);
}

#[tokio::test]
async fn a_part_without_an_id_gets_a_unique_reference() {
    let without_id = |submit: &Submit| {
        let header = [17, 0x8000_0004, 0, submit.sequence].map(u32::to_be_bytes);
        vec![Action::Octets([header.as_flattened(), b"\0"].concat())]
    };
    let smsc = Smsc::builder().on_submit(without_id).start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let answer = submit(&carrier, &queued(7, &"a".repeat(161))).await;
    let names = ["unnamed-7-1", "unnamed-7-2"];
    assert_eq!(
        answer,
        CarrierAnswer::Taken(names.map(str::to_owned).to_vec())
    );
}

#[tokio::test]
async fn a_long_text_may_be_sent_whole_under_one_id() {
    let smsc = Smsc::start();
    let payload = SmppSettings {
        long_text: LongText::Payload,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(payload).await;
    let text = "a".repeat(400);
    assert_eq!(submit(&carrier, &queued(1, &text)).await, taken(1_000_000));
    let submits = smsc.log().submits;
    assert_eq!(submits.len(), 1);
    assert_eq!(submits[0].tlv(0x0424), Some(text.as_bytes()));
    assert!(submits[0].short_message.is_empty());
}

/// The part number in the header of each message.
fn part_numbers(submits: &[Submit]) -> Vec<u8> {
    submits
        .iter()
        .map(|submit| submit.short_message[5])
        .collect()
}

#[tokio::test]
async fn once_a_part_is_accepted_only_the_rest_is_retried() {
    for status in [0x58, 0x14, 0x08] {
        let smsc = Smsc::builder()
            .on_submit(move |submit| match submit.number {
                1 | 2 => vec![Action::Refuse(status)],
                _ => vec![Action::Answer],
            })
            .start();
        let (carrier, _) = connected(settings(&smsc)).await;
        let answer = submit(&carrier, &queued(1, &"a".repeat(400))).await;
        let ids = ["1000000", "1000003", "1000004"];
        assert_eq!(
            answer,
            CarrierAnswer::Taken(ids.map(str::to_owned).to_vec())
        );
        assert_eq!(
            part_numbers(&smsc.log().submits),
            [1, 2, 3, 2, 3],
            "{status:#X}"
        );
    }
}

#[tokio::test]
async fn the_rest_of_a_message_waits_for_a_new_link() {
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            0 => vec![Action::Answer, Action::HangUp],
            _ => vec![Action::Answer],
        })
        .start();
    // Slow enough for the loss to be noticed before the second part is sent.
    let slow = SmppSettings {
        max_per_second: Some(4),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(slow).await;
    let answer = submit(&carrier, &queued(1, &"a".repeat(400))).await;
    let ids = ["1000000", "1000001", "1000002"];
    assert_eq!(
        answer,
        CarrierAnswer::Taken(ids.map(str::to_owned).to_vec())
    );
    let log = smsc.log();
    assert_eq!(part_numbers(&log.submits), [1, 2, 3]);
    assert_eq!(log.binds.len(), 2);
}

#[tokio::test]
async fn the_rest_of_a_message_is_not_tried_after_its_expiry() {
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            0 => vec![Action::Answer],
            _ => vec![Action::Refuse(0x58)],
        })
        .start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let brief = QueuedMessage {
        expires_at: Timestamp::from_second(1).expect("in range"),
        ..queued(1, &"a".repeat(400))
    };
    let since = Instant::now();
    let answer = submit(&carrier, &brief).await;
    assert_eq!(answer, CarrierAnswer::NotNow(Code::THROTTLED));
    assert!(since.elapsed() >= Duration::from_secs(1), "{since:?}");
}

#[tokio::test]
async fn once_a_part_is_accepted_no_other_carrier_is_used() {
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            0 => vec![Action::Answer],
            _ => vec![Action::Refuse(0x4FF)],
        })
        .start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let answer = submit(&carrier, &queued(1, &"a".repeat(400))).await;
    let partly = CarrierAnswer::PartlyTaken {
        references: vec!["1000000".to_owned()],
        code: Code::UNKNOWN,
    };
    assert_eq!(answer, partly);
    assert_eq!(part_numbers(&smsc.log().submits), [1, 2, 3]);
}

#[tokio::test]
async fn parts_are_sent_concurrently_and_in_order() {
    // None is answered before all have arrived.
    let smsc = Smsc::builder()
        .on_submit(|_| vec![Action::WaitForSubmits(10), Action::Answer])
        .start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let answer = submit(&carrier, &queued(1, &"a".repeat(1530))).await;
    let names = (1_000_000..1_000_010).map(|name: u64| name.to_string());
    assert_eq!(answer, CarrierAnswer::Taken(names.collect()));
    let expected: Vec<u8> = (1..=10).collect();
    assert_eq!(part_numbers(&smsc.log().submits), expected);
}

#[tokio::test]
async fn more_parts_than_the_window_holds_leave_in_order() {
    let smsc = Smsc::start();
    let narrow = SmppSettings {
        window: 3,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(narrow).await;
    let answer = submit(&carrier, &queued(1, &"a".repeat(1530))).await;
    assert!(matches!(answer, CarrierAnswer::Taken(parts) if parts.len() == 10));
    let expected: Vec<u8> = (1..=10).collect();
    assert_eq!(part_numbers(&smsc.log().submits), expected);
}

#[tokio::test]
async fn only_sms_are_served() {
    let smsc = Smsc::start();
    let (carrier, _) = connected(settings(&smsc)).await;
    for channel in [Channel::Viber, Channel::Hlr] {
        let queued = QueuedMessage {
            channel,
            ..queued(1, "Hi")
        };
        let answer = submit(&carrier, &queued).await;
        assert_eq!(answer, CarrierAnswer::Declined(Code::NO_ROUTE));
    }
    assert_eq!(smsc.log().submit_count, 0);
}
