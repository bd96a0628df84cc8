use std::net::Ipv4Addr;

use smpp::MessageResp;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

fn activity() -> Activity {
    let user = SmppUserId::new(7).expect("an ID");
    let peer = Peer {
        address: Ipv4Addr::LOCALHOST.into(),
        is_tls: true,
    };
    Activity::new(3, user, BindKind::Transceiver, peer, at(0))
}

fn answer(status: Status, id: &str) -> Pdu {
    let resp = MessageResp::new(id.to_owned());
    Pdu::with_status(status, 9, Body::SubmitSmResp(resp))
}

#[test]
fn answers_are_counted_and_pdus_are_kept() {
    let activity = activity();
    activity.sent(&answer(Status::OK, "41"), 20, ReceiptId::Decimal, at(1));
    activity.sent(&answer(Status::OK, "2a"), 20, ReceiptId::Hex, at(2));
    for _ in 0..2 {
        let refused = answer(Status::ESME_RTHROTTLED, "");
        activity.sent(&refused, 17, ReceiptId::Decimal, at(3));
    }
    activity.settled(Status::OK);
    activity.settled(Status::ESME_RX_T_APPN);
    let bad = Frame::Bad {
        command: command::SUBMIT_SM,
        sequence: 5,
        why: smpp::BodyError::Truncated { field: "a field" },
    };
    activity.received(&bad, 16, ReceiptId::Decimal, at(4));
    activity.set_open(2, 1);
    assert!(!activity.is_reported());
    let session = activity.report(1, at(5));
    assert_eq!((session.number, session.user.get()), (3, 7));
    let report = session.report;
    assert_eq!((report.bound_at, report.active_at), (at(0), at(4)));
    assert_eq!((report.open_requests, report.open_deliveries), (2, 1));
    assert_eq!((report.accepted, report.accepted_last_minute), (2, 2));
    let count = |status: &str, count| {
        vec![StatusCount {
            status: status.to_owned(),
            count,
        }]
    };
    assert_eq!(report.refused, count("ESME_RTHROTTLED", 2));
    assert_eq!(report.acknowledged, 1);
    assert_eq!(report.rejected, count("ESME_RX_T_APPN", 1));
    let messages: Vec<Option<u64>> = report.pdus.iter().map(|pdu| pdu.message).collect();
    assert_eq!(messages, [Some(41), Some(42), None, None, None]);
    let (first, last) = (&report.pdus[0], &report.pdus[4]);
    assert_eq!(
        (first.command.as_str(), first.status.as_deref()),
        ("submit_sm_resp", Some("ESME_ROK"))
    );
    assert_eq!((last.command.as_str(), &last.status), ("submit_sm", &None));
    assert!(last.is_incoming && !first.is_incoming);
}

#[test]
fn only_changed_sessions_are_due() {
    let activity = activity();
    assert_eq!(activity.due_since(at(0)), Some(0), "never reported");
    activity.report(1, at(0));
    assert!(activity.is_reported());
    assert_eq!(activity.due_since(at(1)), None);
    activity.sent(&answer(Status::OK, "1"), 20, ReceiptId::Decimal, at(2));
    assert_eq!(activity.due_since(at(2)), Some(1));
    activity.report(2, at(2));
    assert_eq!(activity.due_since(at(61)), None);
    assert_eq!(activity.due_since(at(62)), Some(2), "the minute is over");
    activity.report(3, at(62));
    assert_eq!(activity.due_since(at(63)), None);
    activity.set_changed();
    assert_eq!(activity.due_since(at(63)), Some(3));
}

#[test]
fn the_last_pdus_are_in_order() {
    let activity = activity();
    for sequence in 1..=50 {
        let pdu = Pdu::new(sequence, Body::EnquireLink);
        activity.sent(&pdu, 16, ReceiptId::Decimal, at(sequence.into()));
    }
    let report = activity.report(1, at(50)).report;
    let sequences: Vec<u32> = report.pdus.iter().map(|pdu| pdu.sequence).collect();
    assert_eq!(sequences, (31..=50).collect::<Vec<u32>>());
}

#[test]
fn a_minute_is_sixty_seconds() {
    let mut minute = LastMinute::default();
    for (second, expected) in [
        (0, 1),
        (1, 2),
        (59, 3),
        (60, 3),
        (61, 3),
        (200, 1),
        (100, 2),
    ] {
        minute.count(at(second));
        assert_eq!(minute.sum(at(second)), expected, "second {second}");
    }
}

#[test]
fn made_up_statuses_do_not_grow_the_counts() {
    let mut counts = StatusCounts::default();
    for status in 1..=100 {
        counts.count(Status::from(0x400 + status));
    }
    counts.count(Status::from(0x401));
    let list = counts.list();
    assert_eq!(list.len(), MAX_STATUSES + 1);
    assert_eq!(list[0].count, 2);
    assert_eq!(list[MAX_STATUSES].count, 84);
    assert_eq!(list[MAX_STATUSES].status, OTHERS);
}
