//! Lookups by the provider: answered at once, or reported later.

use domain::delivery::CarrierAnswer;
use domain::ports::ReportResult;
use domain::{Channel, Code, Outcome};
use testkit::receiver::Reply;

use super::fixture::Fixture;
use crate::upstream::fixture::queued;

const PORTED: &str = r#"{"reachable":true,"ported":true,"network":"24702","original":"24701"}"#;

#[tokio::test]
async fn a_lookup_may_be_answered_at_once() {
    let fixture = Fixture::answering(Reply::answer(200, PORTED));
    let CarrierAnswer::Answered(found) = fixture.submit(&queued(Channel::Hlr)).await else {
        panic!("it is not answered");
    };
    assert_eq!((found.code, found.operator), (Code::FINE, Some(2)));
    assert_eq!(
        found.network.map(domain::Network::mnc).as_deref(),
        Some("02")
    );
    assert_eq!(found.ported_from.map(|operator| operator.id), Some(1));
    let absent = Fixture::answering(Reply::answer(200, r#"{"reachable":false}"#));
    let CarrierAnswer::Answered(found) = absent.submit(&queued(Channel::Hlr)).await else {
        panic!("it is not answered");
    };
    assert_eq!(found.code, Code::ABSENT);
    // The same answer to a message is no result of a lookup.
    let taken = CarrierAnswer::Taken(vec!["@7".to_owned()]);
    assert_eq!(fixture.submit(&queued(Channel::Sms)).await, taken);
}

#[tokio::test]
async fn a_lookup_may_be_reported_later() {
    let fixture = Fixture::answering(Reply::answer(202, r#"{"id":"L1"}"#));
    let taken = CarrierAnswer::Taken(vec!["@7".to_owned()]);
    assert_eq!(fixture.submit(&queued(Channel::Hlr)).await, taken);
    let proof = fixture.proof();
    assert_eq!(fixture.report(&proof, PORTED).await, ReportResult::Yes);
    let receipts = fixture.sink.take_receipts();
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].outcome, Outcome::Delivered);
    let report = receipts[0].report.as_deref().expect("a report");
    assert!(report.contains(r#""mcc":"247","mnc":"02""#), "{report}");
    assert!(report.contains(r#""ported":[{"operatorId":1,"#), "{report}");
}
