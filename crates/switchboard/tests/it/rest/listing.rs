//! The list of messages: filters, pages, privacy.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;

use super::service::{
    Service, in_seconds, message, sms, sms_with, tomorrow, utc, wait_for, with_offset,
};

/// The simulated network accepts messages to this number and never reports on them.
const SILENT: &str = "+447700900002";
/// It reports that the subscriber is absent.
const ABSENT: &str = "+447700900043";

fn list(service: &Service, query: &str) -> Response {
    let response = service.get(&format!("/messages?{query}"));
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    response
}

fn ids(response: &Response) -> Vec<String> {
    let records = response.json();
    let records = records.as_array().expect("a list").iter();
    let id = |record: &Value| record["id"].as_str().expect("a string").to_owned();
    records.map(id).collect()
}

fn listed(service: &Service, query: &str) -> Vec<String> {
    ids(&list(service, query))
}

fn wait_for_state(service: &Service, id: &str, state: &str) {
    wait_for(state, || {
        let rows = list(service, "").json();
        let rows = rows.as_array().expect("a list").clone();
        rows.iter()
            .any(|row| row["id"] == id && row["state"] == state)
            .then_some(())
    });
}

fn messages_are_filtered_and_private(backend: Backend) {
    let service = Service::start(backend);
    let other = service.create_account("other");
    assert_eq!(listed(&service, ""), Vec::<String>::new());
    let delivered = service.accept(&sms())[0].clone();
    let sent = service.accept(&sms_with(&json!({"to": SILENT, "from": "Beta"})))[0].clone();
    let failed = service.accept(&sms_with(
        &json!({"to": ABSENT, "from": 37_167_000_001_u64}),
    ))[0]
        .clone();
    let scheduled = service.accept(&sms_with(&json!({"scheduled": tomorrow()})))[0].clone();
    let cancelled = service.accept(&sms_with(&json!({"scheduled": tomorrow()})))[0].clone();
    assert_eq!(service.delete(&format!("/sms/{cancelled}")).status, 200);
    let body = json!({"msisdn": "+37129100000"}).to_string();
    let path = "/hlr?callback=none";
    let lookup = service.call_as(&service.token, "POST", path, body.as_bytes());
    let lookup = lookup.json()[0].to_string();
    for (id, state) in [
        (&delivered, "delivered"),
        (&sent, "sent"),
        (&failed, "failed"),
        (&lookup, "delivered"),
    ] {
        wait_for_state(&service, id, state);
    }
    let all = [&lookup, &cancelled, &scheduled, &failed, &sent, &delivered];
    let past = with_offset(in_seconds(-3600), 2);
    let coming = with_offset(in_seconds(3600), -3);
    let [since, until] = [past, coming].map(|time| time.replace('+', "%2B"));
    for (case, query, expected) in [
        ("everything", String::new(), &all[..]),
        ("unknown parameters", "colour=red".to_owned(), &all[..]),
        ("an originator", "from=Beta".to_owned(), &[&sent][..]),
        (
            "a number as originator",
            "from=37167000001".to_owned(),
            &[&failed][..],
        ),
        ("an unknown originator", "from=Nobody".to_owned(), &[][..]),
        (
            "a recipient",
            "to=%2B37120000001".to_owned(),
            &[&cancelled, &scheduled, &delivered][..],
        ),
        (
            "without a plus sign",
            "to=447700900002".to_owned(),
            &[&sent][..],
        ),
        ("SMS", "channel=sms".to_owned(), &all[1..]),
        ("lookups", "channel=hlr".to_owned(), &all[..1]),
        ("Viber", "channel=viber".to_owned(), &[][..]),
        ("scheduled", "state=scheduled".to_owned(), &[&scheduled][..]),
        ("sent", "state=sent".to_owned(), &[&sent][..]),
        ("queued", "state=queued".to_owned(), &[][..]),
        (
            "delivered",
            "state=delivered&channel=sms".to_owned(),
            &[&delivered][..],
        ),
        ("failed", "state=failed".to_owned(), &[&failed][..]),
        ("expired", "state=expired".to_owned(), &[][..]),
        ("cancelled", "state=cancelled".to_owned(), &[&cancelled][..]),
        ("of the last hour", format!("since={since}"), &all[..]),
        ("of the next hour", format!("since={until}"), &[][..]),
        (
            "until now",
            format!("since={since}&until={until}"),
            &all[..],
        ),
        ("before an hour ago", format!("until={since}"), &[][..]),
        (
            "several filters",
            "to=37120000001&state=scheduled&from=Acme".to_owned(),
            &[&scheduled][..],
        ),
        (
            "filters that exclude each other",
            "from=Beta&state=scheduled".to_owned(),
            &[][..],
        ),
    ] {
        let found = listed(&service, &query);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{case}");
    }
    let seen = service.call_as(&other, "GET", "/messages", b"");
    assert_eq!(seen.json(), json!([]), "another account sees nothing");
    let cursor = format!("/messages?cursor={lookup}");
    assert_eq!(
        service.call_as(&other, "GET", &cursor, b"").json(),
        json!([])
    );
    check_records(&service, &failed, &lookup);
}

/// Field by field.
fn check_records(service: &Service, failed: &str, lookup: &str) {
    let record = |id: &str| {
        let rows = list(service, "").json();
        let rows = rows.as_array().expect("a list").clone();
        let row = rows.into_iter().find(|row| row["id"] == id);
        row.expect("it is listed")
    };
    let accepted = |record: &Value| {
        let time = record["accepted"].as_str().expect("a time").to_owned();
        let near = utc(in_seconds(-600))..=utc(in_seconds(60));
        assert!(near.contains(&time), "{time}");
        time
    };
    let body = sms_with(&json!({"to": ABSENT, "from": "+37167000001"})).to_string();
    let cost = service.call_as(&service.token, "POST", "/sms/cost", body.as_bytes());
    let price = cost.json()[0]["totalPrice"].clone();
    let message = record(failed);
    let expected = json!({
        "id": failed, "channel": "sms", "from": "+37167000001", "to": ABSENT, "accepted": accepted(&message),
        "scheduled": null, "state": "failed", "status": 2, "error": 43, "parts": 1, "price": price,
    });
    assert_eq!(message, expected);
    let message = record(lookup);
    let expected = json!({
        "id": lookup, "channel": "hlr", "from": null, "to": "+37129100000", "accepted": accepted(&message),
        "scheduled": null, "state": "delivered", "status": 1, "error": 0, "parts": 1, "price": "0.005",
    });
    assert_eq!(message, expected);
    let waiting = list(service, "state=scheduled").json()[0]["scheduled"].clone();
    let due = waiting.as_str().expect("a time");
    assert!(*due > *utc(in_seconds(23 * 3600)), "{due}");
}

/// Follows the cursors, and returns the pages. `between` runs after each page.
fn pages(service: &Service, query: &str, mut between: impl FnMut()) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let response = list(service, &format!("{query}{cursor}"));
        pages.push(ids(&response));
        match response.header("x-next-cursor") {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
        between();
    }
}

fn pages_do_not_shift_while_messages_arrive(backend: Backend) {
    let service = Service::start(backend);
    let scheduled = |to: &Value| sms_with(&json!({"to": to, "scheduled": tomorrow()}));
    let to: Vec<String> = (0..450).map(|n| format!("+371200{n:05}")).collect();
    let mut newest_first = service.accept(&scheduled(&json!(to)));
    newest_first.reverse();
    let flat = |pages: Vec<Vec<String>>| pages.into_iter().flatten().collect::<Vec<_>>();
    let lengths = |pages: &[Vec<String>]| pages.iter().map(Vec::len).collect::<Vec<_>>();
    for (query, expected) in [
        ("", &[100, 100, 100, 100, 50][..]),
        ("limit=150", &[150, 150, 150][..]),
        ("limit=300", &[300, 150][..]),
        ("limit=450", &[450][..]),
        ("limit=1000", &[450][..]),
    ] {
        let found = pages(&service, query, || {});
        assert_eq!(lengths(&found), expected, "{query}");
        assert_eq!(flat(found), newest_first, "{query}");
    }
    let another = scheduled(&json!("+37120000001"));
    let found = pages(&service, "limit=200", || {
        service.accept(&another);
    });
    assert_eq!(
        flat(found),
        newest_first,
        "new messages are on no later page"
    );
    // The number got one message of the first request and two while the pages were read.
    assert_eq!(listed(&service, "limit=2&to=37120000001").len(), 2);
    let of_number = pages(&service, "limit=1&to=37120000001", || {});
    assert_eq!(lengths(&of_number), [1, 1, 1]);
}

on_both_backends!(
    messages_are_filtered_and_private,
    pages_do_not_shift_while_messages_arrive,
);

#[test]
fn invalid_parameters_are_refused() {
    let service = Service::start(Backend::Sqlite);
    for (query, part) in [
        (
            "limit=0",
            "'limit': '0'; give a whole number from 1 to 1000",
        ),
        ("limit=1001", "'limit'"),
        ("cursor=x", "'cursor': 'x'; give the header X-Next-Cursor"),
        (
            "state=lost",
            "'state': 'lost'; give one of scheduled, queued, sent",
        ),
        (
            "channel=pigeon",
            "'channel': 'pigeon'; give sms, viber or hlr",
        ),
        ("to=12", "'to': '12'"),
        ("since=yesterday", "'since': 'yesterday' is not a date-time"),
        ("until=2026-01-31T09:30:00", "'until'"),
        ("from=", "'from'"),
        ("to=%ff", "'to'"),
    ] {
        let response = service.get(&format!("/messages?{query}"));
        assert_eq!(response.status, 400, "{query}: {}", response.text());
        assert!(
            message(&response).contains(part),
            "{query}: {}",
            response.text()
        );
    }
}
