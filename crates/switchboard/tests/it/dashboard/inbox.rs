//! The inbox of an account, conversations, unclaimed messages and inbound numbers.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::chrome::Chrome;
use testkit::http::Response;
use testkit::receiver::Receiver;

use super::operator_pages::{operator, post};
use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    an_account_reads_its_inbox,
    a_reply_is_sent_once_and_its_state_is_shown,
    texts_are_hidden_by_role,
    operators_see_unclaimed_messages_and_give_numbers_to_accounts,
);

const INBOX: &str = "/dashboard/inbox";
const UNCLAIMED: &str = "/dashboard/operator/unclaimed";
const NUMBERS: &str = "/dashboard/operator/numbers";
const HANDSET_FORM: &str = "/dashboard/operator/carriers/handset";
const NUMBER: &str = "+37120000009";
const HANDSET: &str = "+37120000001";
const CONVERSATION: &str =
    "/dashboard/inbox/conversation?number=%2B37120000009&handset=%2B37120000001";
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x>";

/// Gives a number to an account.
pub(super) fn add_number(service: &Service, number: &str, account: &str) {
    let arguments = [
        "number",
        "add",
        "--number",
        number,
        "--account",
        account,
        "--json",
    ];
    service.server.cli_json(&arguments);
}

/// Sends a text from a simulated handset, and returns the ID of the message.
pub(super) fn text(service: &Service, from: &str, to: &str, text: &str) -> String {
    let arguments = [
        "simulator",
        "reply",
        "--from",
        from,
        "--to",
        to,
        "--text",
        text,
        "--json",
    ];
    let sent = service.server.cli_json(&arguments);
    sent["id"].as_str().expect("an ID").to_owned()
}

/// The IDs of the rows that a page lists, in its order.
fn listed(browser: &mut Browser<'_>, address: &str) -> Vec<String> {
    let page = browser.get(address);
    assert_eq!(page.status, 200, "{address}: {}", page.text());
    let text = page.text();
    let rows = text.split("<tr id=\"m").skip(1);
    rows.map(|row| row.split('"').next().expect("an ID").to_owned())
        .collect()
}

/// Checks that a page has these texts.
fn assert_shows(page: &Response, expected: &[&str]) {
    let text = page.text();
    assert_eq!(page.status, 200, "{text}");
    for expected in expected {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

fn an_account_reads_its_inbox(backend: Backend) {
    let service = Service::start(backend);
    service.create_account("other");
    let mut member = joined(&service, "ann@example.com", &["--account", "main"]);
    assert_shows(&member.get(INBOX), &["No messages yet."]);
    assert_shows(&member.get("/dashboard/inbox/numbers"), &["No numbers yet"]);
    add_number(&service, NUMBER, "main");
    let first = text(&service, HANDSET, NUMBER, "Is it open today?");
    let second = text(&service, "+37120000002", NUMBER, HOSTILE);
    assert_eq!(listed(&mut member, INBOX), [&*second, &*first]);
    for (query, expected) in [
        ("from=37120000001", vec![&first]),
        ("from=%2B37120000003", vec![]),
        ("to=%2B371+2000+0009", vec![&second, &first]),
        ("to=1234", vec![]),
        ("since=2020-01-01T00:00", vec![&second, &first]),
        ("until=2020-01-01T00:00", vec![]),
    ] {
        let found = listed(&mut member, &format!("{INBOX}?{query}"));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    for query in ["to=nobody", "since=soon", "until=soon"] {
        let refused = member.get(&format!("{INBOX}?{query}"));
        assert_eq!(refused.status, 422, "{query}");
        assert!(refused.text().contains("aria-invalid"), "{query}");
    }
    let older = member.get(&format!("{INBOX}?before={second}"));
    assert_shows(&older, &["Is it open today?"]);
    assert!(!older.text().contains("alert(1)"), "{}", older.text());

    let detail = member.get(&format!("{INBOX}/{first}"));
    assert_shows(&detail, &["Is it open today?", "1 part in GSM-7", "Latvia"]);
    let link = CONVERSATION.replace('&', "&#38;");
    assert!(detail.text().contains(&link), "{}", detail.text());
    assert_shows(&member.get("/dashboard/inbox/numbers"), &[NUMBER]);
    for path in [INBOX.to_owned(), format!("{INBOX}/{second}")] {
        let page = member.get(&path);
        assert_shows(&page, &["&#60;script&#62;"]);
        assert!(!page.text().contains("<script>"), "{path}");
    }

    // Another account sees nothing of it.
    let mut other = joined(&service, "bob@example.com", &["--account", "other"]);
    assert_shows(&other.get(INBOX), &["No messages yet."]);
    assert_eq!(other.get(&format!("{INBOX}/{first}")).status, 404);
    assert_shows(&other.get(CONVERSATION), &["No messages yet."]);
    assert_shows(&other.get("/dashboard/inbox/numbers"), &["No numbers yet"]);
    for path in [format!("{INBOX}/x"), format!("{INBOX}/999")] {
        assert_eq!(member.get(&path).status, 404, "{path}");
    }
}

fn a_reply_is_sent_once_and_its_state_is_shown(backend: Backend) {
    let service = Service::start(backend);
    let mut member = joined(&service, "ann@example.com", &[]);
    add_number(&service, NUMBER, "main");
    text(&service, HANDSET, NUMBER, "Is it open today?");
    let page = member.get(CONVERSATION);
    assert_shows(
        &page,
        &["Is it open today?", "class=\"received\"", "data-live"],
    );
    let fields: Vec<(String, String)> = ["form_token", "once", "from", "to"]
        .map(|name| (name.to_owned(), member.hidden(name).expect("a field")))
        .into_iter()
        .chain([("message".to_owned(), "Until six".to_owned())])
        .collect();
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    for _ in 0..2 {
        let sent = member.post("/dashboard/inbox/conversation", &fields);
        assert_eq!(sent.status, 303, "{}", sent.text());
        let location = sent.header("location").expect("a location");
        assert_eq!(location, format!("{CONVERSATION}#reply"));
    }
    assert_eq!(service.stored(), 1, "one page sends its reply once");
    wait_for("the delivery", || {
        let page = member.get(CONVERSATION).text();
        page.contains("state delivered").then_some(())
    });
    let shown = member.get(CONVERSATION).text();
    let (question, answer) = (shown.find("Is it open"), shown.find("Until six"));
    assert!(
        question.is_some() && question < answer,
        "the newest is last"
    );
    let inbox = ["simulator", "inbox", "--number", HANDSET, "--json"];
    let inbox = service.server.cli_json(&inbox);
    assert_eq!(inbox[0]["from"], NUMBER, "{inbox}");
    assert_eq!(inbox[0]["message"], "Until six", "{inbox}");
    // The handset's answer names the message that it replies to.
    let thanks = text(&service, HANDSET, NUMBER, "Thank you");
    let detail = member.get(&format!("{INBOX}/{thanks}"));
    assert_shows(&detail, &["In reply to", "/dashboard/messages/"]);

    refuse_replies(&service, &mut member);
    assert_eq!(service.stored(), 1, "nothing else was sent");
}

/// Replies that are not sent.
fn refuse_replies(service: &Service, member: &mut Browser<'_>) {
    member.get(CONVERSATION);
    let empty = member.submit(&[("message", "")]);
    assert_eq!(empty.status, 422, "{}", empty.text());
    assert!(empty.text().contains("id=\"message-problem\""));
    let address = "/dashboard/inbox/conversation";
    let to = |to| [("from", NUMBER), ("to", to), ("message", "Hello")];
    let forged = member.post(address, &to(HANDSET));
    assert_eq!(forged.status, 403, "{}", forged.text());
    for several in ["", "+37120000001,+37120000002", "Acme"] {
        let refused = post(member, address, &to(several));
        assert_eq!(refused.status, 400, "{several}: {}", refused.text());
    }
    assert_eq!(member.get(address).header("location"), Some(INBOX));
    let named = member.get(&format!("{address}?number=1234&handset=Acme"));
    assert_shows(&named, &["it cannot be answered"]);
    let suspended = service.server.cli(&["account", "suspend", "main"]);
    assert!(suspended.status.success(), "{suspended:?}");
    let refused = post(member, address, &to(HANDSET));
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("suspended"), "{}", refused.text());
}

fn texts_are_hidden_by_role(backend: Backend) {
    const SECRET: &str = "the key is under the mat";
    let receiver = Receiver::start();
    let service = Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_CALLBACKS__ALLOW", "['127.0.0.0/8']")
    });
    let url = receiver.url("/inbound");
    let arguments = [
        "number",
        "add",
        "--number",
        NUMBER,
        "--account",
        "main",
        "--url",
        &url,
        "--json",
    ];
    service.server.cli_json(&arguments);
    let id = text(&service, HANDSET, NUMBER, SECRET);
    wait_for("the callback", || receiver.received().into_iter().next());
    let mut member = joined(&service, "ann@example.com", &[]);
    let callbacks = member.get("/dashboard/callbacks?state=all").text();
    let callback = callbacks
        .split("/dashboard/callbacks/")
        .filter_map(|rest| rest.split('"').next())
        .find(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
        .expect("a callback");
    let callback = format!("/dashboard/callbacks/{callback}");
    let about = format!("{INBOX}/{id}");
    assert_shows(&member.get(&callback), &[&about]);
    let pages = [INBOX, &about, CONVERSATION, &callback];
    for page in pages {
        assert!(member.get(page).text().contains(SECRET), "{page}");
    }
    let hidden = service
        .server
        .cli(&["account", "set", "main", "texts_for=admin"]);
    assert!(hidden.status.success(), "{hidden:?}");
    for page in pages {
        let shown = member.get(page).text();
        assert!(!shown.contains(SECRET), "{page}: {shown}");
        assert!(shown.contains("(hidden)"), "{page}: {shown}");
    }
}

fn operators_see_unclaimed_messages_and_give_numbers_to_accounts(backend: Backend) {
    let service = Service::start(backend);
    let mut operator = operator(&service);
    let mut member = joined(&service, "ann@example.com", &["--account", "main"]);
    assert_shows(&operator.get(UNCLAIMED), &["No messages yet."]);
    // Without an owner, a text is unclaimed.
    assert_shows(
        &operator.get("/dashboard/operator/carriers"),
        &[HANDSET_FORM],
    );
    operator.get(HANDSET_FORM);
    let fields = |to, text| [("from", HANDSET), ("to", to), ("message", text)];
    let sent = operator.submit(&fields("1234", "Anybody?"));
    assert_eq!(sent.status, 303, "{}", sent.text());
    assert_shows(&operator.follow(&sent), &["The text was sent as message"]);
    for (to, text) in [("nobody", "Hello"), ("1234", "")] {
        let refused = post(&mut operator, HANDSET_FORM, &fields(to, text));
        assert_eq!(refused.status, 422, "{to} {text}: {}", refused.text());
    }
    let unclaimed = listed(&mut operator, UNCLAIMED);
    assert_eq!(unclaimed.len(), 1);
    let detail = format!("{UNCLAIMED}/{}", unclaimed[0]);
    assert_shows(&operator.get(&detail), &["Anybody?", "number=1234"]);
    assert_shows(
        &operator.get(&format!("{NUMBERS}?number=1234")),
        &["value=\"1234\""],
    );
    assert_shows(&member.get(INBOX), &["No messages yet."]);
    assert_eq!(member.get(&format!("{INBOX}/{}", unclaimed[0])).status, 404);
    assert_eq!(member.get(&detail).status, 403);

    change_numbers(&mut operator);
    let shown = ["1234", "Join", "https://example.com/in"];
    assert_shows(&operator.get(NUMBERS), &shown);
    assert_shows(&member.get("/dashboard/inbox/numbers"), &shown);
    let claimed = text(&service, HANDSET, "1234", "Hello");
    assert_eq!(listed(&mut member, INBOX), [&*claimed]);
    assert_eq!(listed(&mut operator, UNCLAIMED), unclaimed, "as before");
    let foreign = format!("{UNCLAIMED}/{claimed}");
    assert_eq!(operator.get(&foreign).status, 404, "it has an account");

    let remove = [("number", "1234"), ("keyword", "join"), ("sure", "yes")];
    let removed = post(&mut operator, &format!("{NUMBERS}/remove"), &remove);
    assert_shows(&operator.follow(&removed), &["The number was removed."]);
    let left = service.server.cli_json(&["number", "list", "--json"]);
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left[0]["keyword"], Value::Null, "{left}");
}

/// Adds the number 1234 to the first account, with and without a keyword, and tries what is refused.
fn change_numbers(operator: &mut Browser<'_>) {
    let entry = |number, account, keyword, url| {
        [
            ("number", number),
            ("account", account),
            ("keyword", keyword),
            ("url", url),
        ]
    };
    for (fields, status, problem) in [
        (entry("1234", "main", "", ""), 303, None),
        (
            entry("1234", "main", "Join", "https://example.com/in"),
            303,
            None,
        ),
        (
            entry("1234", "main", "JOIN", ""),
            422,
            Some("number-problem"),
        ),
        (entry("12", "main", "", ""), 422, Some("number-problem")),
        (
            entry("1234", "nobody", "x", ""),
            422,
            Some("account-problem"),
        ),
        (
            entry("1234", "main", "two words", ""),
            422,
            Some("keyword-problem"),
        ),
        (
            entry("1234", "main", "x", "ftp://example.com/"),
            422,
            Some("url-problem"),
        ),
        (
            entry("1234", "main", "x", "http://10.0.0.1/"),
            422,
            Some("url-problem"),
        ),
    ] {
        let answer = post(operator, NUMBERS, &fields);
        assert_eq!(answer.status, status, "{fields:?}: {}", answer.text());
        if let Some(problem) = problem {
            assert!(answer.text().contains(problem), "{fields:?}");
        }
    }
}

/// Texts of simulated handsets have no place in a service that sends for real.
#[test]
fn there_is_no_simulated_handset_on_a_real_network() {
    let carrier = "[[carrier]]\nname = \"alpha\"\nkind = \"smpp\"\naddress = \"127.0.0.1:1\"\n\
                   system_id = \"acme\"\npassword = \"s3cret\"\n";
    let service = Service::with(Backend::Sqlite, |builder| builder.config(carrier));
    let mut operator = operator(&service);
    assert_eq!(operator.get(HANDSET_FORM).status, 404);
    let fields = [("from", HANDSET), ("to", "1234"), ("message", "Hello")];
    assert_eq!(post(&mut operator, HANDSET_FORM, &fields).status, 404);
    assert!(listed(&mut operator, UNCLAIMED).is_empty());
}

#[tokio::test]
async fn a_conversation_updates_itself() {
    let service = Service::start(Backend::Sqlite);
    add_number(&service, NUMBER, "main");
    text(&service, HANDSET, NUMBER, "Is it open today?");
    let chrome = Chrome::start().await;
    let page = super::operator(&service, &chrome).await;
    page.click("Inbox").await;
    page.wait_for("Live").await;
    page.click(HANDSET).await;
    page.wait_for("Conversation with").await;
    page.wait_for("Live").await;
    page.evaluate("window.untouched = true").await;
    text(&service, HANDSET, NUMBER, "Until when?");
    page.wait_for("Until when?").await;
    let untouched = page.evaluate("window.untouched").await;
    assert_eq!(untouched, json!(true), "not loaded again");
    page.fill("Reply", "Until six").await;
    page.wait_for("9 of 160").await;
    page.click("main >> Send").await;
    page.wait_until("document.querySelector('.conversation .state.delivered') !== null")
        .await;
    assert_eq!(page.count(".conversation .received").await, 2);
    assert_eq!(page.count(".conversation .sent").await, 1);
    assert_eq!(page.value("Reply").await, "");
    page.assert_no_browser_errors();
    page.assert_accessible().await;
}
