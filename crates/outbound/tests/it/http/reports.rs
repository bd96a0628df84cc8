//! Reports from the provider: which message they belong to, and their effect.

use domain::delivery::{CarrierRef, Receipt};
use domain::ports::{Carrier as _, CarrierPost, ReceiptError, ReportResult};
use domain::{Channel, Code, Outcome};
use outbound::http::{SignatureRules, SignatureScheme};
use testkit::receiver::Reply;

use super::fixture::Fixture;
use crate::setup::now;
use crate::upstream::fixture::queued;

const DELIVERED: &str = r#"{"id":"SM1","status":"delivered"}"#;

fn receipt(outcome: Outcome) -> Receipt {
    Receipt {
        of: CarrierRef {
            carrier: "beta".to_owned(),
            reference: "@7".to_owned(),
        },
        to: None,
        outcome,
        report: None,
        at: now(),
    }
}

/// A carrier that has sent message 7, and the proof of its reports.
async fn sent() -> (Fixture, String) {
    let fixture = Fixture::answering(Reply::answer(200, r#"{"id":"SM1"}"#));
    fixture.submit(&queued(Channel::Sms)).await;
    let proof = fixture.proof();
    (fixture, proof)
}

#[tokio::test]
async fn a_report_becomes_a_receipt_of_its_message_alone() {
    let (fixture, proof) = sent().await;
    for (body, outcome) in [
        (DELIVERED, Some(Outcome::Delivered)),
        ("status=delivered", Some(Outcome::Delivered)),
        (
            r#"{"status":"failed","error":27}"#,
            Some(Outcome::Failed(Code::ABSENT)),
        ),
        (r#"{"status":"expired"}"#, Some(Outcome::Expired)),
        // The ID of another message changes nothing about that one.
        (
            r#"{"id":"SM2","status":"delivered"}"#,
            Some(Outcome::Delivered),
        ),
        (r#"{"status":"queued"}"#, None),
    ] {
        assert_eq!(
            fixture.report(&proof, body).await,
            ReportResult::Yes,
            "{body}"
        );
        let expected: Vec<Receipt> = outcome.map(receipt).into_iter().collect();
        assert_eq!(fixture.sink.take_receipts(), expected, "{body}");
    }
    assert_eq!(
        fixture.report(&proof, r#"{"status":"read"}"#).await,
        ReportResult::Yes
    );
    assert_eq!(fixture.sink.take_receipts(), [receipt(Outcome::Delivered)]);
    assert_eq!(fixture.sink.take_seen(), [receipt(Outcome::Delivered).of]);
}

#[tokio::test]
async fn a_forged_report_changes_nothing() {
    let (fixture, proof) = sent().await;
    let post = CarrierPost {
        headers: &[],
        body: DELIVERED.as_bytes(),
    };
    let cut = &proof[..30];
    for (name, carrier, message, proof, expected) in [
        ("no proof", "beta", 7, "", ReportResult::Unproven),
        ("cut", "beta", 7, cut, ReportResult::Unproven),
        (
            "another message",
            "beta",
            8,
            proof.as_str(),
            ReportResult::Unproven,
        ),
        (
            "another carrier",
            "gamma",
            7,
            proof.as_str(),
            ReportResult::UnknownAddress,
        ),
    ] {
        let result = fixture.report_with(carrier, message, proof, post).await;
        assert_eq!(result, expected, "{name}");
    }
    for body in [
        "",
        "OK",
        "[]",
        "{}",
        r#"{"status":null}"#,
        r#"{"status":{}}"#,
    ] {
        let result = fixture.report(&proof, body).await;
        assert!(
            matches!(result, ReportResult::NotAReport(_)),
            "{body}: {result:?}"
        );
    }
    assert!(fixture.sink.take_receipts().is_empty());
}

#[tokio::test]
async fn a_provider_that_signs_must_sign() {
    let signature = SignatureRules {
        scheme: SignatureScheme::SmsGate,
        key: "hunter2".to_owned(),
    };
    let fixture = Fixture::with(
        |_| Reply::answer(200, "{}"),
        |settings| settings.signature = Some(signature),
    );
    fixture.submit(&queued(Channel::Sms)).await;
    let proof = fixture.proof();
    assert_eq!(
        fixture.report(&proof, DELIVERED).await,
        ReportResult::Unproven
    );
    // Computed with Python's hmac.
    let headers = [
        (
            "x-signature",
            "d37af5fe64fd7eb0d5893e2ae073918b2713e1529cf3214a420c067392fbd5af",
        ),
        ("x-timestamp", "1731672000"),
    ];
    let post = CarrierPost {
        headers: &headers,
        body: DELIVERED.as_bytes(),
    };
    let result = fixture.report_with("beta", 7, &proof, post).await;
    assert_eq!(result, ReportResult::Yes);
    let forged = CarrierPost {
        body: br#"{"status":"failed"}"#,
        ..post
    };
    let result = fixture.report_with("beta", 7, &proof, forged).await;
    assert_eq!(result, ReportResult::Unproven);
    assert_eq!(fixture.sink.take_receipts(), [receipt(Outcome::Delivered)]);
}

#[tokio::test]
async fn a_report_that_cannot_be_stored_comes_again() {
    let (fixture, proof) = sent().await;
    *fixture.sink.error.lock().expect("not poisoned") = Some(ReceiptError::Busy);
    assert_eq!(
        fixture.report(&proof, DELIVERED).await,
        ReportResult::NotNow
    );
    *fixture.sink.error.lock().expect("not poisoned") = None;
    assert_eq!(fixture.report(&proof, DELIVERED).await, ReportResult::Yes);
    fixture.carrier.stop().await;
    assert_eq!(
        fixture.report(&proof, DELIVERED).await,
        ReportResult::NotNow
    );
}
