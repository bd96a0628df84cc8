//! Reports that the carrier asks for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health, ReceiptError};
use domain::{Channel, Outcome};
use outbound::http::{PollRules, RequestDescription, RequestRules, Secrets};
use testkit::receiver::{Reply, Request};

use super::fixture::{Fixture, SECRET};
use crate::upstream::fixture::{queued, wait_for};

/// A carrier that asks for reports by the provider's ID.
fn asking(script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static) -> Fixture {
    Fixture::at(script, |settings, server| {
        let description = RequestDescription {
            method: "GET".to_owned(),
            url: server.url("/messages/{{ provider_id }}"),
            headers: vec![(
                "Authorization".to_owned(),
                "Bearer {{ secret.key }}".to_owned(),
            )],
            ..RequestDescription::default()
        };
        let secrets = Secrets::from([("key".to_owned(), SECRET.to_owned())]);
        let request = RequestRules::parse_poll(&description, None, &secrets);
        settings.poll = Some(PollRules {
            request: request.expect("a request"),
            interval: Duration::from_millis(2),
        });
    })
}

fn taken() -> CarrierAnswer {
    CarrierAnswer::Taken(vec!["@7".to_owned()])
}

#[tokio::test]
async fn the_provider_is_asked_until_the_message_has_ended() {
    let asked = AtomicUsize::new(0);
    let fixture = asking(move |request| {
        if request.path == "/send" {
            return Reply::answer(200, r#"{"id":"SM/1"}"#);
        }
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::answer(404, ""),
            1 => Reply::answer(200, r#"{"status":"queued"}"#),
            2 => Reply::answer(500, ""),
            3 => Reply::answer(200, "<html>"),
            4 => Reply::answer(200, "{}"),
            _ => Reply::answer(200, r#"{"status":"failed","error":"27"}"#),
        }
    });
    // The message counts as taken only when it is stored that its report must be asked for.
    *fixture.polls.error.lock().expect("not poisoned") = Some(ReceiptError::Store);
    assert_eq!(fixture.submit(&queued(Channel::Sms)).await, taken());
    wait_for("the report", || {
        fixture
            .polls
            .waiting
            .lock()
            .expect("not poisoned")
            .is_empty()
    })
    .await;
    let receipts = fixture.sink.take_receipts();
    assert_eq!(receipts.len(), 1, "{receipts:?}");
    assert_eq!(receipts[0].of.reference, "@7");
    let outcome = Outcome::Failed(domain::Code::ABSENT);
    assert_eq!(receipts[0].outcome, outcome);
    let question = fixture.posted().pop().expect("a request");
    assert_eq!(
        (question.method.as_str(), question.path.as_str()),
        ("GET", "/messages/SM%2F1")
    );
    assert_eq!(question.header("authorization"), Some("Bearer hunter2"));
    // Sending goes on whatever the questions are answered with, with the rest of the window.
    assert_eq!(fixture.carrier.health(), Health::Up);
    assert_eq!(fixture.carrier.window(), 7);
    fixture.carrier.stop().await;
}

#[tokio::test]
async fn a_message_without_the_providers_id_is_not_asked_about() {
    let fixture = asking(|_| Reply::answer(200, "{}"));
    assert_eq!(fixture.submit(&queued(Channel::Sms)).await, taken());
    let waiting = fixture.polls.waiting.lock().expect("not poisoned").len();
    assert_eq!(waiting, 0);
}
