//! Reports from the upstream: which message they belong to, and their effect.

use std::sync::Arc;

use domain::delivery::{CarrierRef, Receipt};
use domain::ports::{Carrier as _, CarrierPost, CarrierReports as _, ReceiptError, ReportResult};
use domain::{Channel, Code, MessageId, Network, Outcome};
use outbound::{Upstream, UpstreamReports};
use testkit::receiver::Reply;

use super::fixture::{FixedClock, Fixture, id, queued, settings};
use crate::setup::now;

const DELIVERED: &[u8] = br#"{"id":"10001","status":1,"error":0}"#;

/// A carrier that has sent message 7, and the last part of its callback URL.
async fn sent(channel: Channel) -> (Fixture, Arc<UpstreamReports>, String) {
    let fixture = Fixture::answering(Reply::answer(200, r#"["10001"]"#)).await;
    let reports = UpstreamReports::new();
    reports.set(vec![fixture.upstream.clone()]);
    fixture.submit(&queued(channel)).await;
    fixture.sink.add_known("10001");
    let proof = last_proof(&fixture);
    (fixture, reports, proof)
}

/// The last part of the callback URL that was sent last.
fn last_proof(fixture: &Fixture) -> String {
    let body = fixture.posted().pop().expect("a request").json();
    let address = body.get("dlrUrl").or(body.get("callBackUrl"));
    let address = address.and_then(|one| one.as_str()).expect("an address");
    let (_, proof) = address.rsplit_once('/').expect("a path");
    proof.to_owned()
}

fn post(body: &[u8]) -> CarrierPost<'_> {
    CarrierPost { headers: &[], body }
}

fn carrier_ref(reference: &str) -> CarrierRef {
    CarrierRef {
        carrier: "up".to_owned(),
        reference: reference.to_owned(),
    }
}

fn receipt(reference: &str, outcome: Outcome) -> Receipt {
    Receipt {
        of: carrier_ref(reference),
        to: None,
        outcome,
        report: None,
        network: None,
        at: now(),
    }
}

#[tokio::test]
async fn a_report_becomes_a_receipt() {
    let (fixture, reports, proof) = sent(Channel::Sms).await;
    for (body, outcome) in [
        (DELIVERED, Some(Outcome::Delivered)),
        (
            br#"{"id":10001,"status":"2","error":"43","mcc":null,"mnc":"01"}"#,
            Some(Outcome::Failed(Code::ABSENT)),
        ),
        (
            br#"{"id":"10001","status":16,"error":2}"#,
            Some(Outcome::Expired),
        ),
        (br#"{"id":"10001","status":8,"error":0}"#, None),
    ] {
        assert_eq!(
            reports.take("up", id(7), &proof, post(body)).await,
            ReportResult::Yes
        );
        let expected: Vec<_> = outcome.map(|it| receipt("10001", it)).into_iter().collect();
        assert_eq!(fixture.sink.take_receipts(), expected);
    }
    assert_eq!(fixture.sink.take_seen(), []);
    let names_network = br#"{"id":"10001","status":1,"error":0,"mcc":"247","mnc":"01"}"#;
    let result = reports.take("up", id(7), &proof, post(names_network)).await;
    assert_eq!(result, ReportResult::Yes);
    let expected = Receipt {
        network: Network::new("247", "01"),
        ..receipt("10001", Outcome::Delivered)
    };
    assert_eq!(fixture.sink.take_receipts(), [expected]);
}

#[tokio::test]
async fn only_the_messages_own_callback_address_is_accepted() {
    let (fixture, reports, proof) = sent(Channel::Sms).await;
    let mut other = queued(Channel::Sms);
    other.id = id(8);
    fixture.submit(&other).await;
    let other_proof = last_proof(&fixture);
    let forged = "0".repeat(32);
    let take = |carrier: &'static str, message: MessageId, proof: String| {
        let reports = reports.clone();
        async move {
            reports
                .take(carrier, message, &proof, post(DELIVERED))
                .await
        }
    };
    for (name, carrier, message, proof) in [
        ("forged", "up", id(7), forged.as_str()),
        ("another message's", "up", id(7), other_proof.as_str()),
        ("for another message", "up", id(8), proof.as_str()),
        ("none", "up", id(7), ""),
    ] {
        let taken = take(carrier, message, proof.to_owned()).await;
        assert_eq!(taken, ReportResult::UnknownAddress, "{name}");
    }
    let taken = take("down", id(7), proof).await;
    assert_eq!(taken, ReportResult::Unproven, "no such carrier");
    assert_eq!(fixture.sink.take_receipts(), []);
    assert_eq!(take("up", id(8), other_proof).await, ReportResult::Yes);
}

#[tokio::test]
async fn malformed_reports_are_refused() {
    let (fixture, reports, proof) = sent(Channel::Sms).await;
    for body in [&b"garbage"[..], b"", b"[]", b"{}", &[0xff, 0xfe]] {
        let taken = reports.take("up", id(7), &proof, post(body)).await;
        assert!(matches!(taken, ReportResult::NotAReport(why) if why.ends_with('.')));
    }
    assert_eq!(fixture.sink.take_receipts(), []);
}

#[tokio::test]
async fn a_seen_report_is_stored() {
    let (fixture, reports, proof) = sent(Channel::Viber).await;
    let seen = br#"{"id":"10001","status":3,"error":0}"#;
    assert_eq!(
        reports.take("up", id(7), &proof, post(seen)).await,
        ReportResult::Yes
    );
    assert_eq!(
        fixture.sink.take_receipts(),
        [receipt("10001", Outcome::Delivered)]
    );
    assert_eq!(fixture.sink.take_seen(), [carrier_ref("10001")]);
}

#[tokio::test]
async fn a_lookup_is_reported_under_our_own_id() {
    let (fixture, reports, proof) = sent(Channel::Hlr).await;
    for (body, outcome, network, report) in [
        (
            &br#"{"id":"10001","error":"0","imsi":247010000000001,"country":"LV","operatorId":1635,"mcc":"247","mnc":"01"}"#[..],
            Outcome::Delivered,
            Some("01"),
            r#"{"id":"7","error":0,"imsi":247010000000001,"country":"LV","operatorId":1635,"mcc":"247","mnc":"01"}"#,
        ),
        (
            br#"{"id":"10001","error":43}"#,
            Outcome::Failed(Code::ABSENT),
            None,
            r#"{"id":"7","error":43}"#,
        ),
    ] {
        assert_eq!(reports.take("up", id(7), &proof, post(body)).await, ReportResult::Yes);
        let expected = Receipt {
            network: network.and_then(|it| Network::new("247", it)),
            report: Some(report.to_owned()),
            ..receipt("10001", outcome)
        };
        assert_eq!(fixture.sink.take_receipts(), [expected]);
    }
}

#[tokio::test]
async fn a_message_with_our_own_reference_is_found() {
    let (fixture, reports, proof) = sent(Channel::Viber).await;
    fixture.sink.add_known("@7");
    let both = |theirs| {
        let delivered = Outcome::Delivered;
        [receipt(theirs, delivered), receipt("@7", delivered)]
    };
    let delivered = br#"{"id":"555","status":1}"#;
    assert_eq!(
        reports.take("up", id(7), &proof, post(delivered)).await,
        ReportResult::Yes
    );
    assert_eq!(fixture.sink.take_receipts(), both("555"));
    let seen = br#"{"id":"555","status":3}"#;
    assert_eq!(
        reports.take("up", id(7), &proof, post(seen)).await,
        ReportResult::Yes
    );
    assert_eq!(fixture.sink.take_receipts(), both("555"));
    assert_eq!(fixture.sink.take_seen(), [carrier_ref("@7")]);
}

#[tokio::test]
async fn reports_that_cannot_be_stored_are_requested_again() {
    let (fixture, reports, proof) = sent(Channel::Sms).await;
    for error in [
        ReceiptError::Busy,
        ReceiptError::Stopping,
        ReceiptError::Store,
    ] {
        *fixture.sink.error.lock().expect("not poisoned") = Some(error);
        let taken = reports.take("up", id(7), &proof, post(DELIVERED)).await;
        assert_eq!(taken, ReportResult::NotNow, "{error:?}");
    }
    *fixture.sink.error.lock().expect("not poisoned") = None;
    fixture.upstream.stop().await;
    let taken = reports.take("up", id(7), &proof, post(DELIVERED)).await;
    assert_eq!(taken, ReportResult::NotNow, "stopped");
    assert_eq!(fixture.sink.take_receipts(), []);
}

#[tokio::test]
async fn a_new_token_still_accepts_reports_for_the_old_one() {
    let (fixture, reports, proof) = sent(Channel::Sms).await;
    let with_token = |token: &str| {
        let mut settings = settings(&fixture.server.url("/api"));
        token.clone_into(&mut settings.token);
        let sink = &fixture.sink;
        Upstream::start(settings, sink.clone(), sink.clone(), Arc::new(FixedClock))
    };
    for (token, taken) in [
        ("sb_second", ReportResult::Yes),
        ("sb_second", ReportResult::Yes),
        ("sb_third", ReportResult::Yes),
        ("sb_fourth", ReportResult::Yes),
        ("sb_fifth", ReportResult::Yes),
        // The first token has been replaced five times.
        ("sb_sixth", ReportResult::UnknownAddress),
    ] {
        reports.set(vec![with_token(token)]);
        assert_eq!(
            reports.take("up", id(7), &proof, post(DELIVERED)).await,
            taken,
            "{token}"
        );
    }
    reports.set(Vec::new());
    let taken = reports.take("up", id(7), &proof, post(DELIVERED)).await;
    assert_eq!(taken, ReportResult::Unproven, "no carrier is left");
}

/// The end of the address to which the upstream sends texts.
fn inbound_proof(upstream: &Upstream) -> String {
    let address = upstream.settings().inbound_url();
    let (start, proof) = address.as_str().rsplit_once('/').expect("a path");
    assert!(start.ends_with("/carriers/up/inbound"), "{start}");
    proof.to_owned()
}

const TEXT: &[u8] = br#"{"id":"55","from":"+37120000001","to":"1234","message":"Yes","received":"2030-01-31 07:30:00"}"#;

#[tokio::test]
async fn a_text_from_a_handset_is_stored_under_its_source() {
    let (fixture, reports, report_proof) = sent(Channel::Sms).await;
    let proof = inbound_proof(&fixture.upstream);
    for (name, carrier, proof) in [
        ("none", "up", ""),
        ("of a report", "up", report_proof.as_str()),
        ("no such carrier", "down", proof.as_str()),
    ] {
        let taken = reports.take_text(carrier, proof, post(TEXT)).await;
        assert_eq!(taken, ReportResult::Unproven, "{name}");
    }
    let taken = reports.take_text("up", &proof, post(b"{}")).await;
    assert!(matches!(taken, ReportResult::NotAReport(_)), "{taken:?}");
    assert_eq!(fixture.sink.take_texts(), []);

    let again = TEXT.to_vec();
    for body in [TEXT, &again] {
        let taken = reports.take_text("up", &proof, post(body)).await;
        assert_eq!(taken, ReportResult::Yes);
    }
    let texts = fixture.sink.take_texts();
    assert_eq!(texts.len(), 2);
    assert_eq!(texts[0], texts[1], "the same source");
    let text = &texts[0].1;
    assert_eq!(
        (text.carrier.as_str(), text.from.as_str()),
        ("up", "+37120000001")
    );

    *fixture.sink.error.lock().expect("not poisoned") = Some(ReceiptError::Store);
    let taken = reports.take_text("up", &proof, post(TEXT)).await;
    assert_eq!(taken, ReportResult::NotNow, "it cannot be stored");
    *fixture.sink.error.lock().expect("not poisoned") = None;
    fixture.upstream.stop().await;
    let taken = reports.take_text("up", &proof, post(TEXT)).await;
    assert_eq!(taken, ReportResult::NotNow, "stopped");
}
