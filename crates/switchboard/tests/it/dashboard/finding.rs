//! Finding messages: filters in the address, paging by key, and no messages of other accounts. Over plain HTTP, without
//! a browser.

use serde_json::json;
use testkit::Backend;

use super::operator_pages::operator;
use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, in_seconds, sms_with, wait_for};

on_both_backends!(messages_are_found_by_filters);

/// The IDs of the rows that a page lists, in its order.
fn listed(browser: &mut Browser<'_>, address: &str) -> Vec<String> {
    let page = browser.get(address);
    assert_eq!(page.status, 200, "{address}: {}", page.text());
    let text = page.text();
    let rows = text.split("<tr id=\"m").skip(1);
    rows.map(|row| row.split('"').next().expect("an ID").to_owned())
        .collect()
}

/// The addresses in the tables of charts that have this filter.
fn bars(page: &str, filter: &str) -> Vec<String> {
    let links = page.split("<td><a href=\"").skip(1);
    let links = links.map(|rest| rest.split('"').next().expect("its end"));
    let links = links.map(|link| link.replace("&#38;", "&"));
    links.filter(|link| link.contains(filter)).collect()
}

/// The bars of the overview, of its last days and of some days, lead to the messages behind them in these days.
fn bars_lead_to_their_messages(browser: &mut Browser<'_>, delivered: &str, failed: &str) {
    let day = |seconds| in_seconds(seconds).strftime("%Y-%m-%d").to_string();
    let (yesterday, tomorrow) = (day(-86400), day(86400));
    let days = format!("/dashboard?from={yesterday}&to={tomorrow}");
    let since = format!("since={yesterday}T00%3A00&until=");
    for (address, period) in [("/dashboard", "since="), (days.as_str(), since.as_str())] {
        let page = browser.get(address).text();
        for (filter, id) in [
            ("?country=LV&since=", delivered),
            ("?country=GB&since=", failed),
            ("operator=", delivered),
            ("?error=43&", failed),
        ] {
            let links = bars(&page, filter);
            let found = links.iter().find(|link| {
                assert!(link.contains(period), "{link}");
                listed(browser, link).iter().any(|row| row == id)
            });
            assert!(found.is_some(), "{address}: {filter}: {links:?}");
        }
        assert!(page.contains("A bar leads to the messages"), "{page}");
    }
    let before = day(-10 * 86400);
    let page = browser.get(&format!("/dashboard?from={before}&to={before}"));
    assert_eq!(bars(&page.text(), "since="), [""; 0]);
}

/// Of all accounts, or of one.
fn operators_see_traffic(service: &Service) {
    service.create_account("acme");
    let mut operator = operator(service);
    let address = "/dashboard/operator/traffic";
    let with_traffic = [
        "<h2>Delivery rate</h2>",
        "<h2>Time until delivery</h2>",
        "Time until delivery (p50, p95)",
        "The 30 days before",
    ];
    for (query, expected, link) in [
        (
            "",
            &with_traffic[..],
            "operator/messages?country=LV&#38;since=",
        ),
        (
            "?account=main",
            &with_traffic,
            "operator/messages?account=main&#38;country=LV&#38;since=",
        ),
        (
            "?account=acme",
            &["The 30 days before", "No message ended"],
            "",
        ),
    ] {
        let page = operator.get(&format!("{address}{query}"));
        assert_eq!(page.status, 200, "{query}: {}", page.text());
        let text = page.text();
        for expected in expected.iter().chain(&[link]) {
            assert!(text.contains(expected), "{query}: {expected}: {text}");
        }
    }
    for query in ["account=nobody", "from=2026-01-01&to=2026-03-01"] {
        let page = operator.get(&format!("{address}?{query}"));
        assert_eq!(page.status, 422, "{query}");
        assert!(!page.text().contains("<h2>"), "{query}: no figures");
    }
}

fn messages_are_found_by_filters(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let send = |fields| service.accept(&sms_with(&fields)).remove(0);
    let delivered = send(json!({ "to": "+37120000001" }));
    let absent = send(json!({ "to": "+447700900043", "from": "Beta" }));
    let later = send(json!({ "scheduled": in_seconds(7200).to_string() }));
    wait_for("the final states", || {
        let ended = listed(&mut browser, "/dashboard/messages?state=delivered").len()
            + listed(&mut browser, "/dashboard/messages?state=failed").len();
        (ended == 2).then_some(())
    });
    let time = |seconds| in_seconds(seconds).strftime("%Y-%m-%dT%H:%M").to_string();
    for (query, expected) in [
        (String::new(), vec![&later, &absent, &delivered]),
        ("to=%2B44+7700+900043".to_owned(), vec![&absent]),
        ("from=Beta".to_owned(), vec![&absent]),
        ("state=failed&error=43".to_owned(), vec![&absent]),
        ("error=40".to_owned(), vec![]),
        ("state=scheduled".to_owned(), vec![&later]),
        ("channel=viber".to_owned(), vec![]),
        ("country=LV&state=delivered".to_owned(), vec![&delivered]),
        ("country=DE".to_owned(), vec![]),
        ("network=24799".to_owned(), vec![]),
        (
            "to=%2B37120000001&state=delivered".to_owned(),
            vec![&delivered],
        ),
        (
            format!("since={}", time(-600)),
            vec![&later, &absent, &delivered],
        ),
        (format!("until={}", time(-600)), vec![]),
    ] {
        let found = listed(&mut browser, &format!("/dashboard/messages?{query}"));
        let found: Vec<&String> = found.iter().collect();
        assert_eq!(found, expected, "{query}");
    }
    let overview = browser.get("/dashboard").text();
    for expected in [
        "<h2>Time until delivery</h2>",
        "Time until delivery (p50, p95)",
        "\"/dashboard/messages?country=LV&#38;since=",
    ] {
        assert!(overview.contains(expected), "{expected}: {overview}");
    }
    bars_lead_to_their_messages(&mut browser, &delivered, &absent);
    operators_see_traffic(&service);
    let page = browser.get("/dashboard/messages?state=failed&totals=1");
    let page = page.text();
    for expected in [
        "found.csv?state=failed\"",
        "<td>All</td><td class=\"number\" data-label=\"Messages\">1</td>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let file = browser.get("/dashboard/messages/found.csv?state=failed");
    assert_eq!(file.status, 200, "{}", file.text());
    let text = file.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "the header and one message: {text}");
    let start = format!("{absent},main,sms,Beta,+447700900043,");
    assert!(lines[1].starts_with(&start), "{text}");
    assert!(lines[1].contains(",failed,2,43,1,"), "{text}");
    let wrong = browser.get("/dashboard/messages/found.csv?state=lost");
    assert_eq!(wrong.status, 400);
    for query in [
        "to=nobody",
        "id=1x",
        "id=9007199254740991",
        "state=lost",
        "since=soon",
        "country=Latvia",
    ] {
        let refused = browser.get(&format!("/dashboard/messages?{query}"));
        assert_eq!(refused.status, 422, "{query}: {}", refused.text());
        assert!(refused.text().contains("id=\"filter-problem\""), "{query}");
    }
    let detail = browser.get(&format!("/dashboard/messages/{absent}")).text();
    for expected in [
        "Failed: the subscriber is absent (error 43)",
        "Send it again later.",
        "Accepted by carrier",
    ] {
        assert!(detail.contains(expected), "{expected}: {detail}");
    }
}

#[test]
fn older_messages_are_behind_a_link() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let empty = browser.get("/dashboard/messages").text();
    assert!(empty.contains("No messages yet."), "{empty}");
    let to: Vec<String> = (0..60)
        .map(|number| format!("+371200000{number:02}"))
        .collect();
    let ids = service.accept(&sms_with(
        &json!({ "to": to, "from": "A&B 1".replace('&', "") }),
    ));
    let first = listed(&mut browser, "/dashboard/messages?from=AB+1");
    let page = browser.get("/dashboard/messages?from=AB+1").text();
    let scope = "sort only the messages on this page";
    assert!(page.contains(scope), "{page}");
    let (_, rest) = page
        .split_once("rel=\"next\"")
        .map_or(("", ""), |(a, b)| (b, a));
    let older = rest
        .rsplit("href=\"")
        .next()
        .and_then(|href| href.split('"').next());
    let older = older.expect("a link").replace("&#38;", "&");
    assert!(older.contains("from=AB+1&before="), "filters stay: {older}");
    let second = listed(&mut browser, &older);
    let all: Vec<String> = first.into_iter().chain(second).collect();
    let expected: Vec<String> = ids.into_iter().rev().collect();
    assert_eq!(all, expected, "each once, the newest first");
    let page = browser.get(&older).text();
    assert!(
        !page.contains("data-live=\"/dashboard/messages"),
        "old pages do not change"
    );
}

#[test]
fn messages_of_others_are_not_found() {
    let service = Service::start(Backend::Sqlite);
    let other = service.create_account("other");
    let body = sms_with(&json!({ "message": "a secret" })).to_string();
    let sent = service.call_as(&other, "POST", "/sms", body.as_bytes());
    let theirs = crate::rest::service::ids(&sent).remove(0);
    let mut ann = joined(&service, "ann@example.com", &["--account", "main"]);
    let mut bob = joined(&service, "bob@example.com", &["--account", "other"]);
    let path = format!("/dashboard/messages/{theirs}");
    assert_eq!(bob.get(&path).status, 200);
    for path in [
        &path,
        &format!("{path}/live"),
        "/dashboard/messages/0",
        "/dashboard/messages/x",
    ] {
        assert_eq!(ann.get(path).status, 404, "{path}");
    }
    let by_id = ann.get(&format!("/dashboard/messages?id={theirs}"));
    assert_eq!(by_id.status, 422, "{}", by_id.text());
    assert!(!ann.get("/dashboard/messages").text().contains("a secret"));
    assert!(bob.get("/dashboard/messages").text().contains("a secret"));
    assert!(!ann.get("/dashboard").text().contains("other"));
}
