//! Several messages in one request.

use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::{Channel, Code, Msisdn};
use outbound::http::{BatchRules, RequestDescription, RequestRules, Secrets};
use serde_json::{Value, json};
use testkit::receiver::{Reply, Request};

use super::fixture::{Fixture, pointer};
use crate::upstream::fixture::{id, queued};

/// A carrier with three messages in a request and one request in flight.
fn batching(script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static) -> Fixture {
    Fixture::at(script, |settings, server| {
        let description = RequestDescription {
            method: "POST".to_owned(),
            url: server.url("/send"),
            json: Some(json!({ "text": "{{ text }}", "messages": "{{ items }}" })),
            item: Some(
                json!({ "to": "{{ to }}", "ref": "{{ id }}", "callback": "{{ report_url }}" }),
            ),
            ..RequestDescription::default()
        };
        let request = RequestRules::parse(&description, None, &Secrets::new());
        settings.request = request.expect("a request");
        settings.lookup = None;
        settings.window = 5;
        settings.response.refused = vec!["rejected".to_owned()];
        settings.batch = Some(BatchRules {
            size: 3,
            results: pointer("/messages"),
            to: Some(pointer("/to")),
            id: Some(pointer("/id")),
            state: Some(pointer("/status")),
            error: Some(pointer("/code")),
        });
    })
}

fn message(number: u64, text: &str) -> QueuedMessage {
    QueuedMessage {
        id: id(number),
        to: Msisdn::parse(&format!("+3712000000{number}")).expect("a number"),
        text: text.to_owned(),
        ..queued(Channel::Sms)
    }
}

fn taken(number: u64) -> CarrierAnswer {
    CarrierAnswer::Taken(vec![format!("@{number}")])
}

/// The recipients of each request.
fn recipients(fixture: &Fixture) -> Vec<Vec<u64>> {
    let last_digit = |item: &Value| {
        let to = item["to"].as_str().expect("a number");
        to[to.len() - 1..].parse().expect("a digit")
    };
    let numbers = |body: Value| -> Vec<u64> {
        let items = body["messages"].as_array().expect("a list");
        items.iter().map(last_digit).collect()
    };
    let requests = fixture.posted();
    requests.iter().map(|it| numbers(it.json())).collect()
}

#[tokio::test]
async fn messages_that_wait_go_together_and_each_has_its_result() {
    let fixture = batching(|request| {
        let body: Value = serde_json::from_slice(request.body).expect("JSON");
        let items = body["messages"].as_array().expect("a list");
        let result = |item: &Value| match item["to"].as_str() {
            Some("+37120000003") => json!({ "to": item["to"], "status": "rejected", "code": "17" }),
            _ => json!({ "to": item["to"], "status": "ok", "id": "SM1" }),
        };
        // The results may be in any order.
        let results: Vec<Value> = items.iter().rev().map(result).collect();
        Reply::answer(200, json!({ "messages": results }).to_string())
    });
    let messages = [1, 2, 3, 4, 5].map(|number| message(number, "Hello"));
    let other = message(6, "Bye");
    let [one, two, three, four, five] = &messages;
    // All are handed over before the first answer comes.
    let answers = tokio::join!(
        fixture.submit(one),
        fixture.submit(two),
        fixture.submit(three),
        fixture.submit(four),
        fixture.submit(five),
        fixture.submit(&other),
    );
    let refused = CarrierAnswer::Declined(Code::new(53).expect("a code"));
    let expected = (taken(1), taken(2), refused, taken(4), taken(5), taken(6));
    assert_eq!(answers, expected);
    // The first one does not wait for others. Another text is another request.
    assert_eq!(
        recipients(&fixture),
        [vec![1], vec![2, 3, 4], vec![5], vec![6]]
    );
    let request = &fixture.posted()[1].json();
    assert_eq!(request["text"], "Hello");
    let callback = request["messages"][2]["callback"].as_str().expect("a URL");
    assert!(callback.contains("/reports/4/"), "{callback}");
    assert_eq!(request["messages"][2]["ref"], "4");
}

#[tokio::test]
async fn a_refused_batch_is_sent_one_by_one() {
    let fixture = batching(|request| {
        let body = String::from_utf8_lossy(request.body);
        if body.contains("+37120000003") {
            Reply::answer(400, r#"{"code":17}"#)
        } else {
            Reply::answer(200, "{}")
        }
    });
    let [one, two, three] = &[1, 2, 3].map(|number| message(number, "Hello"));
    let answers = tokio::join!(
        fixture.submit(one),
        fixture.submit(two),
        fixture.submit(three)
    );
    let refused = CarrierAnswer::Declined(Code::new(53).expect("a code"));
    assert_eq!(answers, (taken(1), taken(2), refused));
    let expected = [vec![1], vec![2, 3], vec![2], vec![3]];
    assert_eq!(recipients(&fixture), expected);
}

#[tokio::test]
async fn a_batch_without_an_answer_is_unknown_for_each() {
    let fixture = batching(|_| Reply::close());
    let [one, two, three] = &[1, 2, 3].map(|number| message(number, "Hello"));
    let answers = tokio::join!(
        fixture.submit(one),
        fixture.submit(two),
        fixture.submit(three)
    );
    let unknown = CarrierAnswer::Unknown;
    assert_eq!(answers, (unknown.clone(), unknown.clone(), unknown));
    // Two failures in a row, not three.
    assert_eq!(fixture.note(), None);
    assert_eq!(recipients(&fixture), [vec![1], vec![2, 3]]);
}
