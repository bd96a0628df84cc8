//! Test reports, receivers that are paused, and forms that say all that is wrong at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::Code;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::operator_pages::{operator, post};
use crate::mcp::{Client, failure};
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

const TEST: &str = "/dashboard/callbacks/test";

on_both_backends!(a_callback_to_a_paused_receiver_is_sent_again);

/// A receiver is paused after five failures in a row.
fn a_callback_to_a_paused_receiver_is_sent_again(backend: Backend) {
    let works = Arc::new(AtomicBool::new(false));
    let scripted = works.clone();
    let receiver = Receiver::builder()
        .script(move |_| {
            if scripted.load(Ordering::SeqCst) {
                Reply::ok()
            } else {
                Reply::answer(500, "no")
            }
        })
        .start();
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &["--account", "main"]);
    let mut operator = operator(&service);
    for _ in 0..6 {
        let sent = post(&mut ann, TEST, &[("url", &receiver.url("/report"))]);
        let message = sent.header("location").unwrap_or_default();
        assert!(
            message.starts_with("/dashboard/messages/"),
            "{}",
            sent.text()
        );
    }
    wait_for("the pause", || {
        let hosts = operator.get("/dashboard/operator/hosts").text();
        hosts.contains("paused until").then_some(())
    });
    let list = ann.get("/dashboard/callbacks").text();
    let (_, first) = list
        .split_once("<a href=\"/dashboard/callbacks/")
        .unwrap_or_else(|| panic!("no callback: {list}"));
    let id = first.split('"').next().expect("an ID");
    let callback = format!("/dashboard/callbacks/{id}");
    works.store(true, Ordering::SeqCst);
    let tried = receiver.count();
    // A callback that is being sent at this moment is skipped.
    wait_for("it is sent again", || {
        let again = post(&mut ann, &format!("{callback}/replay"), &[]);
        let page = ann.follow(&again).text();
        page.contains("It is being sent again.").then_some(())
    });
    assert!(receiver.wait_for(tried + 1, TEST_TIMEOUT), "it was sent");
    wait_for("it is received", || {
        let page = ann.get(&callback).text();
        page.contains("state received").then_some(())
    });
}

#[test]
fn mistakes_in_a_file_are_named_and_no_page_is_sent_twice() {
    const BULK: &str = "/dashboard/bulk";
    let service = Service::start(Backend::Sqlite);
    let mut ann = joined(&service, "ann@example.com", &["--account", "main"]);
    let wrong = [
        ("from", "Acme"),
        ("message", "Hi {nme}"),
        ("csv", "to,name\n+37120000001,Ann\n"),
        ("once", "1"),
    ];
    let refused = post(&mut ann, BULK, &wrong);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("Line 1: "), "{}", refused.text());
    let numbers = [
        ("from", "Acme"),
        ("message", "Hi {name}"),
        ("csv", "to,name\n12,Ann\n+37120000001,Bob\nx,Carl\n"),
        ("once", "1"),
    ];
    let refused = post(&mut ann, BULK, &numbers).text();
    assert!(
        refused.contains("Line 2: ") && refused.contains("Line 4: "),
        "{refused}"
    );

    let window = [
        ("from", "Acme"),
        ("message", "Hi {name}"),
        ("csv", "to,name\n+37120000001,Ann\n"),
        ("windowFrom", "20:00"),
        ("windowUntil", "09:00"),
        ("once", "1"),
    ];
    let refused = post(&mut ann, BULK, &window).text();
    assert!(refused.contains("must end later on the day"), "{refused}");
    let mut window = window;
    (window[3].1, window[4].1) = ("00:00", "23:59");
    let checked = post(&mut ann, BULK, &window).text();
    assert!(checked.contains("00:00 and 23:59"), "{checked}");

    // The same page sent again sends nothing twice.
    let few = [
        ("from", "Acme"),
        ("message", "Hello"),
        ("csv", "number\n+37120000001\n+37120000002\n"),
        ("testMode", "1"),
        ("once", "3"),
    ];
    let checked = post(&mut ann, BULK, &few).text();
    for text in ["Send 2 messages?", "Hello", "0.00 "] {
        assert!(checked.contains(text), "{text}: {checked}");
    }
    assert_eq!(service.stored(), 0, "nothing is sent yet");
    for _ in 0..2 {
        let sent = post(&mut ann, "/dashboard/bulk/send", &few);
        let progress = sent.header("location").expect("an address").to_owned();
        wait_for("the end", || {
            let page = ann.get(&progress).text();
            page.contains("state done").then_some(())
        });
    }
    assert_eq!(service.stored(), 2);
}

/// Saves, offers and removes a template.
#[test]
fn a_template_is_saved_chosen_and_removed() {
    const HERE: &str = "/dashboard/templates";
    const TEXT: &str = "Hello {name}, it is <ready>";
    let service = Service::start(Backend::Sqlite);
    let mut ann = joined(&service, "ann@example.com", &["--account", "main"]);
    for (name, text, status) in [
        ("", TEXT, 422),
        ("Order", " ", 422),
        ("Order", "Hello", 303),
        ("Order", TEXT, 303),
    ] {
        let saved = post(&mut ann, HERE, &[("name", name), ("text", text)]);
        assert_eq!(saved.status, status, "{name}: {}", saved.text());
    }
    let shown = "Hello {name}, it is &#60;ready&#62;</textarea>";
    for page in ["/dashboard/send", "/dashboard/bulk"] {
        let offered = ann.get(page).text();
        assert!(offered.contains("<option value=\"Order\""), "{offered}");
        assert!(!offered.contains(shown), "{offered}");
        let chosen = ann.get(&format!("{page}?template=Order")).text();
        assert!(chosen.contains(shown), "{chosen}");
    }
    service.create_account("other");
    let mut bob = joined(&service, "bob@example.com", &["--account", "other"]);
    assert!(!bob.get("/dashboard/send").text().contains("Order"));
    let remove = format!("{HERE}/remove");
    let asked = post(&mut ann, &remove, &[("name", "Order")]);
    assert!(asked.text().contains("Remove this template?"));
    let sure = [("name", "Order"), ("sure", "yes")];
    let removed = post(&mut ann, &remove, &sure);
    assert_eq!(removed.status, 303, "{}", removed.text());
    assert!(ann.get(HERE).text().contains("No templates yet"));
}

#[test]
fn forms_say_all_that_is_wrong_at_once() {
    let service = Service::start(Backend::Sqlite);
    let mut ann = joined(&service, "ann@example.com", &["--account", "main"]);
    let refused = post(&mut ann, TEST, &[("url", "ftp://example.com/")]);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let fields = [
        ("from", "a name that is too long"),
        ("to", "12"),
        ("message", "x"),
        ("scheduled", "soon"),
        ("dlrUrl", "ftp://example.com/"),
        ("once", "1"),
    ];
    let refused = post(&mut ann, "/dashboard/send", &fields);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let page = refused.text();
    for field in ["from", "to", "scheduled", "dlrUrl"] {
        let problem = format!("id=\"{field}-problem\"");
        assert!(page.contains(&problem), "{field}: {page}");
    }
    let viber = [("channel", "viber"), ("from", "Acme"), ("message", "x")];
    let refused = post(&mut ann, "/dashboard/send", &viber);
    assert!(refused.text().contains("approved"), "{}", refused.text());

    let body =
        serde_json::json!({ "to": "+37120000001", "from": "much too long a name", "message": "x" });
    assert_eq!(service.send(&body).status, 400);
    let nobody = serde_json::json!({ "to": "+12", "from": "Acme", "message": "x" });
    failure(&service.call_tool(&service.token, "send_sms", &nobody));
    let unknown = service.call_tool(&service.token, "send_fax", &nobody);
    assert_eq!(unknown.status, 200, "{}", unknown.text());
    let mut admin = joined(
        &service,
        "carl@example.com",
        &["--role", "admin", "--account", "main"],
    );
    let requests = ["POST /sms<", "POST /mcp send_sms<", "POST /mcp<"];
    let page = wait_for("the requests in the log", || {
        let page = admin.get("/dashboard/settings/api/tokens/1/requests");
        let page = page.text();
        let are_listed = requests.iter().all(|request| page.contains(request));
        are_listed.then_some(page)
    });
    assert_eq!(page.matches("400 Bad Request").count(), 3, "{page}");
    let code = Code::INVALID_NUMBER.entry();
    let error = format!("{} {}", code.number, code.words);
    assert!(page.contains(&error), "{error}: {page}");
    assert!(!page.contains("send_fax"), "{page}");
    assert!(!page.contains("much too long"), "{page}");

    let mut operator = operator(&service);
    let account = [("name", ""), ("balance", "much")];
    let refused = post(&mut operator, "/dashboard/operator/accounts", &account);
    assert_eq!(refused.status, 422);
    let problems = refused.text().matches("class=\"problem\"").count();
    assert_eq!(problems, 2, "{}", refused.text());

    let period = ann.get("/dashboard?from=2026-01-01&to=2026-03-01");
    assert_eq!(period.status, 422, "{}", period.text());
    let period = ann.get("/dashboard?from=2026-01-01&to=2026-01-02");
    assert!(
        period.text().contains("The 2 days before"),
        "{}",
        period.text()
    );
}
