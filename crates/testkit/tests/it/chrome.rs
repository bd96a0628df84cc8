//! The browser on test pages: input works, and errors are found.

use std::any::Any;
use std::time::Duration;

use serde_json::json;
use testkit::axe::Impact;
use testkit::chrome::{Chrome, Page};
use testkit::receiver::{Receiver, Reply, Request};
use testkit::temp_dir;

/// As strict as that of the dashboard.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'";

const FORM: &str = r#"<h1>Order</h1><nav><a href="/there">There</a> <a href="/there">There</a></nav>
<main><form method="post" action="/order">
<label for="name">Name</label><input id="name" name="name" value="old">
<label>Day <input type="date" name="day"></label>
<label>Kind <select name="kind"><option value="a">First kind</option><option value="b">Second kind</option></select></label>
<label><input type="checkbox" name="gift"> As a <b>gift</b></label>
<label><input type="radio" name="pace" value="fast"> Fast</label>
<label>File <input type="file" name="file"></label>
<button>Send order</button></form>
<table><tr><td>one</td><td><a href="/one">Open</a></td></tr><tr><td>two</td><td><a href="/two">Open</a></td></tr></table>
<p>The   long
word</p><p hidden>secret</p></main>"#;

const SCRIPTED: &str = r#"<h1>Scripted</h1><p id="state">waiting</p><script src="/script.js"></script>
<noscript>no scripts here</noscript>"#;
const SCRIPT: &str =
    "setTimeout(() => { document.querySelector('#state').textContent = 'arrived'; }, 50);";

const FAULTY: &str = r#"<h1>Faulty</h1><script src="/faulty.js"></script><script>alert(1)</script><img alt="" src="/missing.png">"#;
const FAULTY_SCRIPT: &str = "console.error('so', 'wrong'); console.warn('fine'); setTimeout(() => { throw new Error('thrown late'); });";

const UNLABELLED: &str = r#"<!doctype html><html lang="en"><head><title>T</title></head>
<body><main><h1>T</h1><input name="a"></main></body></html>"#;
const LABELLED: &str = r#"<!doctype html><html lang="en"><head><title>T</title></head>
<body><main><h1>T</h1><label>A <input name="a"></label></main></body></html>"#;

const WIDE: &str =
    r#"<meta name="viewport" content="width=device-width"><h1>Wide</h1><hr width="900">"#;

fn answer(request: &Request<'_>) -> Reply {
    let (kind, body) = match request.path {
        "/form" => ("text/html", FORM.to_owned()),
        "/scripted" => ("text/html", SCRIPTED.to_owned()),
        "/script.js" => ("text/javascript", SCRIPT.to_owned()),
        "/faulty" => ("text/html", FAULTY.to_owned()),
        "/faulty.js" => ("text/javascript", FAULTY_SCRIPT.to_owned()),
        "/unlabelled" => ("text/html", UNLABELLED.to_owned()),
        "/labelled" => ("text/html", LABELLED.to_owned()),
        "/wide" => ("text/html", WIDE.to_owned()),
        "/order" => {
            let head = "HTTP/1.1 303 See\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n";
            // A test that does not wait would be faster.
            return Reply::raw(head).after(Duration::from_millis(200));
        }
        "/missing.png" | "/nowhere" => return Reply::answer(404, "nothing"),
        "/cookie" => {
            let head = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n";
            return Reply::raw(head);
        }
        path => {
            let cookie = request.header("cookie").unwrap_or("none");
            let page = format!("<h1>At {path}</h1><p>Cookie: {cookie}</p>");
            ("text/html", page)
        }
    };
    Reply::raw(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Security-Policy: {POLICY}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

async fn opened(path: &str) -> (Receiver, Page) {
    let site = Receiver::builder().script(answer).start();
    let page = Chrome::start().await.page().await;
    page.open(&site.url(path)).await;
    (site, page)
}

/// The panic message of a test.
async fn failure(work: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(work)
        .await
        .expect_err("the test panics")
        .into_panic();
    let text = |panic: Box<dyn Any + Send>| panic.downcast::<String>().expect("a text");
    *text(panic)
}

#[tokio::test]
async fn forms_are_filled_in_and_their_next_page_is_waited_for() {
    let (site, page) = opened("/form").await;
    assert_eq!(page.value("Name").await, "old");
    let folder = temp_dir("file").expect("a folder");
    let file = folder.path().join("list.csv");
    std::fs::write(&file, "a,b").expect("a file");

    page.fill("Name", "Ann <b> & \"Bob\"").await;
    page.fill("Day", "2026-02-28").await;
    page.select("Kind", "Second kind").await;
    page.tick("As a gift").await;
    page.tick("Fast").await;
    page.attach("File", &file).await;
    page.click("Send order").await;
    assert_eq!(page.path().await, "/there", "the next page is waited for");
    assert_eq!((page.status(), page.count("h1").await), (Some(200), 1));
    let received = site.received();
    let sent = received.iter().find(|sent| sent.method == "POST");
    let sent = sent.expect("the form");
    assert_eq!(sent.path, "/order");
    assert_eq!(
        String::from_utf8_lossy(&sent.body),
        "name=Ann+%3Cb%3E+%26+%22Bob%22&day=2026-02-28&kind=b&gift=on&pace=fast&file=list.csv"
    );

    page.back().await;
    page.untick("gift").await;
    page.fill("Name", "").await;
    assert_eq!(page.value("#name").await, "");
    page.press("x").await;
    page.press("Enter").await;
    assert_eq!(page.path().await, "/there", "also after a key press");
    page.back().await;
    page.submit().await;
    page.wait_for("At /there").await;
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn elements_are_found_by_text_label_and_css() {
    let (_site, page) = opened("/form").await;
    for (wanted, path) in [
        ("There", "/there"),
        ("two >> Open", "/two"),
        ("tr:first-child >> Open", "/one"),
        ("a[href='/two']", "/two"),
    ] {
        page.click(wanted).await;
        assert_eq!(page.path().await, path, "{wanted}");
        page.back().await;
    }
    page.wait_for("The long word").await;
    page.wait_gone("secret").await;
    page.set_timeout(Duration::from_millis(200));
    let message = failure(async move { page.click("Open").await }).await;
    assert!(message.contains("2 are called \"Open\""), "{message}");
}

#[tokio::test]
async fn a_timeout_fails_with_the_address_and_the_text_of_the_page() {
    let (site, page) = opened("/form").await;
    page.set_timeout(Duration::from_millis(200));
    let message = failure(async move { page.wait_for("A miracle").await }).await;
    for expected in ["\"A miracle\"", &site.url("/form"), "Order"] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
    let (_site, page) = opened("/form").await;
    page.set_timeout(Duration::from_millis(200));
    let message = failure(async move { page.click("Cancel order").await }).await;
    for expected in ["\"Cancel order\"", "\"Send order\"", "\"There\""] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[tokio::test]
async fn scripts_run_unless_they_are_disabled() {
    let (_site, page) = opened("/scripted").await;
    page.wait_for("arrived").await;
    page.wait_until("document.querySelector('#state').textContent === 'arrived'")
        .await;
    assert_eq!(
        page.evaluate("Promise.resolve({ a: [1] })").await,
        json!({ "a": [1] })
    );
    page.disable_scripts().await;
    page.reload().await;
    page.wait_for("no scripts here").await;
    assert!(page.text().await.contains("waiting"));
    page.enable_scripts().await;
    page.reload().await;
    page.wait_for("arrived").await;
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn browser_errors_are_collected() {
    let (site, page) = opened("/faulty").await;
    page.wait_until("document.readyState === 'complete'").await;
    let missing = format!("request: 404 from {}", site.url("/missing.png"));
    let expected = [
        "console: so wrong",
        "script: Error: thrown late",
        "security: ",
        &missing,
    ];
    let errors = page.browser_errors();
    for expected in expected {
        let found = errors.iter().any(|error| error.starts_with(expected));
        assert!(found, "{expected}: {errors:#?}");
    }
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    page.clear_browser_errors();
    page.open(&site.url("/nowhere")).await;
    assert_eq!(page.status(), Some(404));
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn accessibility_rules_find_a_field_without_a_label() {
    let (site, page) = opened("/labelled").await;
    page.assert_accessible().await;
    page.open(&site.url("/unlabelled")).await;
    let findings = page.findings().await;
    let label = findings.iter().find(|finding| finding.id == "label");
    let label = label.unwrap_or_else(|| panic!("not found: {findings:#?}"));
    assert_eq!(
        (label.impact, label.nodes.len()),
        (Some(Impact::Critical), 1)
    );
    page.assert_no_browser_errors();
    let message = failure(async move { page.assert_accessible().await }).await;
    assert!(message.contains("<input name=\"a\">"), "{message}");
}

#[tokio::test]
async fn pages_share_no_cookies_and_screenshots_have_the_requested_width() {
    let site = Receiver::builder().script(answer).start();
    let chrome = Chrome::start().await;
    let (one, other) = (chrome.page().await, chrome.page().await);
    one.open(&site.url("/cookie")).await;
    for (page, cookie) in [(&one, "Cookie: a=b"), (&other, "Cookie: none")] {
        page.open(&site.url("/see")).await;
        page.wait_for(cookie).await;
    }
    let folder = temp_dir("screenshots").expect("a folder");
    let path = folder.path().join("one.png");
    for width in [390_u32, 1280] {
        one.set_viewport(width, 800).await;
        one.screenshot(&path).await;
        let png = std::fs::read(&path).expect("a screenshot");
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let found = u32::from_be_bytes(png[16..20].try_into().expect("four octets"));
        // A page without a viewport tag is laid out 980 wide on a phone.
        assert_eq!(found, if width < 600 { 980 } else { width });
    }
    other.open(&site.url("/wide")).await;
    assert!(!other.is_too_wide().await);
    other.set_viewport(390, 800).await;
    assert!(other.is_too_wide().await);
    other.set_dark(true).await;
    other
        .wait_until("matchMedia('(prefers-color-scheme: dark)').matches")
        .await;
}
