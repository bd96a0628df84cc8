//! Texts from handsets, as the provider sends them.

use domain::ports::{CarrierPost, ReceiptError, ReportResult};
use domain::{Channel, Outcome};
use outbound::http::CarrierLinks;
use testkit::receiver::Reply;

use super::fixture::{Fixture, pointer};
use crate::upstream::fixture::queued;

const TEXT: &str = r#"{"id":"IN1","from":"+37120000001","to":"1234","text":"Hello"}"#;

fn proof() -> String {
    let base = "https://sms.example".parse().expect("a URL");
    let url = CarrierLinks::new("beta", &base, &[[7; 32]]).inbound_url();
    let start = "https://sms.example/carriers/beta/inbound/";
    url.strip_prefix(start).expect("our URL").to_owned()
}

fn post(body: &str) -> CarrierPost<'_> {
    CarrierPost {
        headers: &[],
        body: body.as_bytes(),
    }
}

#[tokio::test]
async fn a_text_is_stored() {
    let fixture = Fixture::answering(Reply::ok());
    assert_eq!(
        fixture.text(&proof(), post(TEXT)).await,
        ReportResult::TextStored
    );
    let texts = fixture.handsets.texts.lock().expect("not poisoned").clone();
    let [(_, text)] = texts.try_into().expect("one text");
    assert_eq!(
        (text.carrier.as_str(), text.from.as_str()),
        ("beta", "+37120000001")
    );
    assert_eq!(text.to.to_string(), "1234");
    assert_eq!(text.whole.text, "Hello");
}

#[tokio::test]
async fn texts_of_a_list_are_stored_before_the_answer() {
    let fixture = Fixture::with(
        |_| Reply::ok(),
        |settings| {
            let inbound = settings.inbound.as_mut().expect("it is set");
            inbound.list = Some(pointer("/results"));
        },
    );
    let (other, unreadable) = (TEXT.replace("IN1", "IN2"), TEXT.replace("text", "body"));
    let count = || fixture.handsets.texts.lock().expect("not poisoned").len();
    let body = format!(r#"{{"results":[{TEXT},{unreadable}]}}"#);
    let result = fixture.text(&proof(), post(&body)).await;
    assert!(matches!(result, ReportResult::NotAReport(_)), "{result:?}");
    assert_eq!(count(), 0);
    let body = format!(r#"{{"results":[{TEXT},{other}]}}"#);
    *fixture.handsets.error.lock().expect("not poisoned") = Some(ReceiptError::Store);
    let result = fixture.text(&proof(), post(&body)).await;
    assert_eq!(result, ReportResult::NotNow);
    *fixture.handsets.error.lock().expect("not poisoned") = None;
    let result = fixture.text(&proof(), post(&body)).await;
    assert_eq!(result, ReportResult::TextStored);
    assert_eq!(count(), 2);
}

#[tokio::test]
async fn a_repetition_is_recognised_by_its_id() {
    let fixture = Fixture::answering(Reply::ok());
    let other = TEXT.replace("IN1", "IN2");
    let without = TEXT.replace("IN1", "");
    for body in [TEXT, TEXT, &other, &without, &without] {
        assert_eq!(
            fixture.text(&proof(), post(body)).await,
            ReportResult::TextStored
        );
    }
    let texts = fixture.handsets.texts.lock().expect("not poisoned").clone();
    let source = |index: usize| texts[index].0;
    assert_eq!(source(0), source(1));
    assert_ne!(source(0), source(2));
    assert_ne!(
        source(3),
        source(4),
        "without an ID each one is another text"
    );
}

#[tokio::test]
async fn a_forged_text_changes_nothing() {
    let fixture = Fixture::answering(Reply::answer(200, "{}"));
    fixture.submit(&queued(Channel::Sms)).await;
    for proof in ["", "f00d", &fixture.proof()] {
        assert_eq!(
            fixture.text(proof, post(TEXT)).await,
            ReportResult::Unproven
        );
    }
    for body in [
        "",
        "nonsense",
        "{}",
        r#"{"from":"1234","to":"Acme","text":"x"}"#,
    ] {
        let result = fixture.text(&proof(), post(body)).await;
        assert!(
            matches!(result, ReportResult::NotAReport(_)),
            "{body}: {result:?}"
        );
    }
    assert!(
        fixture
            .handsets
            .texts
            .lock()
            .expect("not poisoned")
            .is_empty()
    );
    let closed = Fixture::with(|_| Reply::ok(), |settings| settings.inbound = None);
    assert_eq!(
        closed.text(&proof(), post(TEXT)).await,
        ReportResult::Unproven
    );
}

#[tokio::test]
async fn a_text_that_cannot_be_stored_comes_again() {
    let fixture = Fixture::answering(Reply::ok());
    *fixture.handsets.error.lock().expect("not poisoned") = Some(ReceiptError::Busy);
    assert_eq!(
        fixture.text(&proof(), post(TEXT)).await,
        ReportResult::NotNow
    );
    *fixture.handsets.error.lock().expect("not poisoned") = None;
    assert_eq!(
        fixture.text(&proof(), post(TEXT)).await,
        ReportResult::TextStored
    );
}

#[tokio::test]
async fn reports_may_come_to_the_same_url_if_the_carrier_says_so() {
    let report = r#"{"event":"sms:delivered","ref":"7"}"#;
    let separate = Fixture::answering(Reply::ok());
    let result = separate.text(&proof(), post(report)).await;
    assert!(matches!(result, ReportResult::NotAReport(_)), "{result:?}");
    let shared = Fixture::with(
        |_| Reply::ok(),
        |settings| {
            let report = settings.report.as_mut().expect("a table");
            report.is_shared = true;
            report.id = Some(pointer("/ref"));
            report.state = pointer("/event");
            report.delivered = vec!["sms:delivered".to_owned()];
        },
    );
    assert_eq!(shared.text(&proof(), post(report)).await, ReportResult::Yes);
    let receipts = shared.sink.take_receipts();
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].of.reference, "@7");
    assert_eq!(receipts[0].outcome, Outcome::Delivered);
    let on_its_way = r#"{"event":"sms:sent","ref":"7"}"#;
    assert_eq!(
        shared.text(&proof(), post(on_its_way)).await,
        ReportResult::Yes
    );
    assert!(shared.sink.take_receipts().is_empty());
    assert_eq!(
        shared.text(&proof(), post(TEXT)).await,
        ReportResult::TextStored
    );
}
