//! Reports from the provider: which message they belong to, and their effect.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::delivery::{CarrierRef, Receipt};
use domain::ports::{Carrier as _, CarrierPost, ReceiptError, ReportResult};
use domain::{Channel, Code, Network, Outcome};
use outbound::http::{CarrierLinks, SignatureRules, SignatureScheme};
use ring::hmac;
use testkit::receiver::Reply;

use super::fixture::Fixture;
use crate::setup::now;
use crate::upstream::fixture::{id, queued};

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
        network: None,
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
    let names_network = r#"{"status":"delivered","mccmnc":"24702"}"#;
    let result = fixture.report(&proof, names_network).await;
    assert_eq!(result, ReportResult::Yes);
    let expected = Receipt {
        network: Network::new("247", "02"),
        ..receipt(Outcome::Delivered)
    };
    assert_eq!(fixture.sink.take_receipts(), [expected]);
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
            ReportResult::Unproven,
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

/// The provider signs the URL that it was given, with the proof of the key of that time.
#[tokio::test]
async fn a_signed_report_to_a_url_of_a_former_key_counts() {
    const TOKEN: &str = "hunter2";
    let signature = SignatureRules {
        scheme: SignatureScheme::Twilio,
        key: TOKEN.to_owned(),
    };
    let (former, own) = ([7; 32], [8; 32]);
    let fixture = Fixture::with(
        |_| Reply::ok(),
        |settings| {
            settings.proof_keys = vec![own, former];
            settings.signature = Some(signature);
        },
    );
    let base = "https://sms.example".parse().expect("a URL");
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, TOKEN.as_bytes());
    for (name, keys, signed_keys, expected) in [
        ("the own key", [own], [own], ReportResult::Yes),
        ("a former key", [former], [former], ReportResult::Yes),
        ("another URL", [former], [own], ReportResult::Unproven),
        (
            "an unknown key",
            [[9; 32]],
            [[9; 32]],
            ReportResult::Unproven,
        ),
    ] {
        let links = |keys| CarrierLinks::new("beta", &base, keys);
        let url = links(&keys).report_url(id(7));
        let (_, proof) = url.rsplit_once('/').expect("a URL");
        let signed = links(&signed_keys).report_url(id(7));
        let tag = hmac::sign(&key, format!("{signed}statusdelivered").as_bytes());
        let tag = STANDARD.encode(tag.as_ref());
        let post = CarrierPost {
            headers: &[("x-twilio-signature", &tag)],
            body: b"status=delivered",
        };
        let result = fixture.report_with("beta", 7, proof, post).await;
        assert_eq!(result, expected, "{name}");
    }
    let delivered = receipt(Outcome::Delivered);
    assert_eq!(fixture.sink.take_receipts(), [delivered.clone(), delivered]);
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
