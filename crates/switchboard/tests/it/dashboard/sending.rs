//! The send form: its preview, its refusals, and that it sends once. Over plain HTTP, without a browser.

use testkit::Backend;

use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, in_seconds, wait_for};

on_both_backends!(a_message_is_sent_once_and_found);

const PAGE: &str = "/dashboard/send";
/// Fields that are accepted.
const FIELDS: [(&str, &str); 3] = [
    ("from", "Acme"),
    ("to", "+37120000001"),
    ("message", "Hello"),
];

/// [`FIELDS`] with one replaced or added.
fn with<'a>(name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    let others = FIELDS.into_iter().filter(|(known, _)| *known != name);
    others.chain([(name, value)]).collect()
}

fn member(service: &Service) -> Browser<'_> {
    joined(service, "ann@example.com", &[])
}

fn a_message_is_sent_once_and_found(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = member(&service);
    let page = browser.get(PAGE).text();
    assert!(page.contains("nothing real is sent"), "{page}");
    assert!(page.contains("+447700900000</textarea>"), "{page}");

    let token = browser.hidden("form_token").expect("a token");
    let once = browser.hidden("once").expect("a key");
    let mut fields = FIELDS.to_vec();
    fields.extend([("form_token", token.as_str()), ("once", once.as_str())]);
    let sent = browser.post(PAGE, &fields);
    assert_eq!(sent.status, 303, "{}", sent.text());
    let address = sent.header("location").expect("a location").to_owned();
    assert!(address.starts_with("/dashboard/messages/"), "{address}");
    let again = browser.post(PAGE, &fields);
    assert_eq!(
        again.header("location"),
        Some(address.as_str()),
        "sent twice"
    );
    assert_eq!(service.stored(), 1);
    fields[2].1 = "Hello!";
    let other = browser.post(PAGE, &fields);
    assert_ne!(other.header("location"), Some(address.as_str()));
    assert_eq!(service.stored(), 2, "another text is another message");

    wait_for("the delivery", || {
        let page = browser.get(&address).text();
        assert!(
            page.contains("+37120000001") && page.contains("Latvia"),
            "{page}"
        );
        page.contains(">Delivered").then_some(())
    });
    let id = address.rsplit('/').next().expect("an ID");
    let found = browser.get(&format!("/dashboard/messages?id={id}"));
    assert_eq!(found.header("location"), Some(address.as_str()));
}

#[test]
fn a_problem_is_shown_at_its_field() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = member(&service);
    let past = in_seconds(-3600).strftime("%Y-%m-%dT%H:%M").to_string();
    for (field, value, expected) in [
        ("from", "No<b>", "id=\"from-problem\""),
        ("to", "12", "id=\"to-problem\""),
        ("to", "+37120000001, nobody", "id=\"to-problem\""),
        ("to", " , ", "name at least one recipient"),
        ("message", "", "give at least one character"),
        ("scheduled", &past, "is in the past"),
        ("scheduled", "soon", "id=\"scheduled-problem\""),
        ("dlrUrl", "ftp://example.com/", "id=\"dlrUrl-problem\""),
        ("dlrUrl", "http://10.0.0.1/", "id=\"dlrUrl-problem\""),
        ("testMode", "3", "is not a test mode"),
    ] {
        browser.get(PAGE);
        let refused = browser.submit(&with(field, value));
        let page = refused.text();
        assert_eq!(refused.status, 422, "{field}={value}: {page}");
        assert!(page.contains(expected), "{field}={value}: {page}");
        assert!(
            page.contains("aria-invalid=\"true\""),
            "{field}={value}: {page}"
        );
        let kept = if field == "message" { "Acme" } else { "Hello" };
        assert!(page.contains(kept), "the input is kept: {page}");
    }
    assert_eq!(service.stored(), 0);
}

#[test]
fn a_message_is_sent_to_several_numbers_at_once() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = member(&service);
    browser.get(PAGE);
    let sent = browser.submit(&with("to", "+37120000001,+37120000002\r\n+371 2000 0003"));
    let location = sent.header("location").expect("an address");
    assert!(location.starts_with("/dashboard/messages?said=sent-3."));
    let list = browser.follow(&sent).text();
    assert!(list.contains("3 messages were accepted."), "{list}");
    for number in ["+37120000001", "+37120000002", "+37120000003"] {
        assert!(list.contains(number), "{list}");
    }
}

#[test]
fn size_and_price_are_shown_before_sending() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = member(&service);
    for (text, expected) in [
        ("Hello", &["GSM-7", "5 of 160, 155 left", "0.0406 EUR"][..]),
        (
            "It’s <i>",
            &["UCS-2", "<mark>’</mark>", "U+2019", "s &#60;i&#62;"],
        ),
        ("", &["Enter the text to see the price."]),
    ] {
        browser.get(PAGE);
        let token = browser.hidden("form_token").expect("a token");
        let mut fields = with("message", text);
        fields.push(("form_token", &token));
        let page = browser.post("/dashboard/send/measure", &fields);
        assert_eq!(page.status, 200, "{}", page.text());
        fields.push(("part", "1"));
        let part = browser.post("/dashboard/send/measure", &fields);
        assert_eq!(part.status, 200, "{}", part.text());
        assert!(!part.text().contains("<html"), "only the part");
        for expected in expected {
            assert!(page.text().contains(expected), "{text}: {}", page.text());
            assert!(part.text().contains(expected), "{text}: {}", part.text());
        }
    }
    assert_eq!(service.stored(), 0);
}

#[test]
fn the_balance_is_checked_before_and_while_sending() {
    let service = Service::start(Backend::Sqlite);
    service
        .server
        .cli_json(&["account", "create", "--name", "poor", "--json"]);
    let mut browser = joined(&service, "ann@example.com", &["--account", "poor"]);
    browser.get(PAGE);
    let refused = browser.submit(&FIELDS);
    assert_eq!(refused.status, 422, "{}", refused.text());
    for expected in ["The balance does not cover this", "Not enough balance."] {
        assert!(refused.text().contains(expected), "{}", refused.text());
    }
}

#[test]
fn a_forged_form_and_a_suspended_account_send_nothing() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = member(&service);
    browser.get(PAGE);
    for path in [PAGE, "/dashboard/send/measure"] {
        let refused = browser.post(path, &FIELDS);
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
    }
    browser.get(PAGE);
    service.server.cli(&["account", "suspend", "main"]);
    wait_for("the suspension", || {
        let page = browser.get(PAGE).text();
        page.contains("This account is suspended").then_some(())
    });
    let refused = browser.submit(&FIELDS);
    assert!(
        refused.text().contains("This account is suspended"),
        "{}",
        refused.text()
    );
    assert_eq!(service.stored(), 0);
    let mut signed_out = Browser::new(&service);
    let redirect = signed_out.get(PAGE);
    assert_eq!(
        redirect.header("location"),
        Some("/dashboard/sign-in?next=/dashboard/send")
    );
}
