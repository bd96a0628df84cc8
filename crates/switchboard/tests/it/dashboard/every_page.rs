//! Checks of every page: no errors in the browser, accessible, fits a phone, readable without scripts. Screenshots are
//! written to `target/screenshots`.

use std::collections::BTreeMap;

use domain::access::token::TokenHash;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::axe::Finding;
use testkit::chrome::{Chrome, Page};

use super::{account, joined, operator};
use crate::people::client::Client;
use crate::people::{invite, path};
use crate::rest::service::{Service, sms, sms_with};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Viewer {
    SignedOut,
    Member,
    Operator,
}
use Viewer::{Member, Operator, SignedOut};

/// Every page: the name of its screenshots, the viewer, and the address. [`Site::start`] replaces what is in braces.
const PAGES: &[(&str, Viewer, &str)] = &[
    ("first-link", SignedOut, "{first_link}"),
    ("sign-in", SignedOut, "/dashboard/sign-in"),
    ("invitation", SignedOut, "{invitation}"),
    ("overview", Member, "/dashboard"),
    ("consent", Member, "{consent}"),
    (
        "overview-period",
        Member,
        "/dashboard?from=2026-01-01&to=2026-01-31",
    ),
    ("search", Member, "/dashboard/search?q=nothing-of-this-name"),
    ("overview-operator", Operator, "/dashboard"),
    ("send", Member, "/dashboard/send"),
    ("bulk", Member, "/dashboard/bulk"),
    ("templates", Member, "/dashboard/templates?name=Order"),
    ("messages", Member, "/dashboard/messages"),
    ("message", Member, "/dashboard/messages/{message}"),
    ("message-failed", Member, "/dashboard/messages/{failed}"),
    ("password", Operator, "/dashboard/password"),
    (
        "operator-accounts",
        Operator,
        "/dashboard/operator/accounts",
    ),
    (
        "operator-account",
        Operator,
        "/dashboard/operator/accounts/1",
    ),
    (
        "operator-account-token",
        Operator,
        "/dashboard/operator/accounts/1/token",
    ),
    (
        "operator-messages",
        Operator,
        "/dashboard/operator/messages",
    ),
    ("operator-senders", Operator, "/dashboard/operator/senders"),
    (
        "operator-carriers",
        Operator,
        "/dashboard/operator/carriers",
    ),
    (
        "operator-routes",
        Operator,
        "/dashboard/operator/routes?to=%2B37120000001&channel=sms",
    ),
    (
        "operator-carrier-new",
        Operator,
        "/dashboard/operator/carriers/new",
    ),
    (
        "operator-carrier-preset",
        Operator,
        "/dashboard/operator/carriers/new?start=twilio",
    ),
    (
        "operator-carrier",
        Operator,
        "/dashboard/operator/carriers/edit?name=simulator",
    ),
    (
        "operator-carriers-history",
        Operator,
        "/dashboard/operator/carriers/history",
    ),
    (
        "operator-route",
        Operator,
        "/dashboard/operator/routes/edit",
    ),
    ("operator-prices", Operator, "/dashboard/operator/prices"),
    (
        "operator-reference",
        Operator,
        "/dashboard/operator/reference?asked=LMT",
    ),
    ("operator-queues", Operator, "/dashboard/operator/queues"),
    ("operator-hosts", Operator, "/dashboard/operator/hosts"),
    ("operator-nodes", Operator, "/dashboard/operator/nodes"),
    ("connect", Member, "/dashboard/connect"),
    ("accounts", Member, "/dashboard/accounts"),
    ("senders", Member, "/dashboard/senders"),
    ("sender", Member, "/dashboard/senders/{sender}"),
    ("opt-outs", Member, "/dashboard/opt-outs"),
    ("operator-blocks", Operator, "/dashboard/operator/blocks"),
    ("inbox", Member, "/dashboard/inbox"),
    ("inbox-message", Member, "/dashboard/inbox/{inbound}"),
    ("inbox-numbers", Member, "/dashboard/inbox/numbers"),
    (
        "conversation",
        Member,
        "/dashboard/inbox/conversation?number=%2B37120000009&handset=%2B37120000001",
    ),
    ("operator-numbers", Operator, "/dashboard/operator/numbers"),
    (
        "operator-smpp-users",
        Operator,
        "/dashboard/operator/smpp-users",
    ),
    (
        "operator-unclaimed",
        Operator,
        "/dashboard/operator/unclaimed",
    ),
    (
        "operator-unclaimed-message",
        Operator,
        "/dashboard/operator/unclaimed/{unclaimed}",
    ),
    (
        "operator-handset",
        Operator,
        "/dashboard/operator/carriers/handset",
    ),
    ("sender-name", Member, "/dashboard/senders/name"),
    ("sender-number", Member, "/dashboard/senders/number"),
    ("numbers", Member, "/dashboard/numbers"),
    ("rates", Member, "/dashboard/rates"),
    ("statement", Member, "/dashboard/statement"),
    (
        "operator-statement",
        Operator,
        "/dashboard/operator/accounts/1/statement",
    ),
    ("operator-margin", Operator, "/dashboard/operator/margin"),
    ("lookups", Member, "/dashboard/lookups"),
    (
        "lookup-price",
        Member,
        "/dashboard/lookups?msisdn=%2B447700900800",
    ),
    ("lookup", Member, "/dashboard/lookups/{lookup}"),
    ("verify", Member, "/dashboard/verify"),
    ("verification", Member, "/dashboard/verify/{verification}"),
    ("operator-verify", Operator, "/dashboard/operator/verify"),
    ("scheduled", Member, "/dashboard/scheduled"),
    (
        "scheduled-cancel",
        Member,
        "/dashboard/scheduled/{scheduled}",
    ),
    ("callbacks", Member, "/dashboard/callbacks"),
    ("callback", Member, "/dashboard/callbacks/{callback}"),
    (
        "callbacks-replay",
        Member,
        "/dashboard/callbacks/replay?from=2020-01-01T00%3A00",
    ),
    ("settings-api", Operator, "/dashboard/settings/api"),
    ("settings-api-new", Operator, "/dashboard/settings/api/new"),
    (
        "settings-api-delete",
        Operator,
        "/dashboard/settings/api/tokens/1",
    ),
    (
        "settings-api-requests",
        Operator,
        "/dashboard/settings/api/tokens/1/requests",
    ),
    (
        "settings-api-rotate",
        Operator,
        "/dashboard/settings/api/secret/rotate",
    ),
    ("settings-people", Operator, "/dashboard/settings/people"),
    (
        "settings-notifications",
        Operator,
        "/dashboard/settings/notifications",
    ),
    ("settings-audit", Operator, "/dashboard/settings/audit"),
    ("security", Member, "/dashboard/settings/security"),
    ("operator-people", Operator, "/dashboard/operator/people"),
    ("operator-audit", Operator, "/dashboard/operator/audit"),
    (
        "operator-message",
        Operator,
        "/dashboard/operator/messages/{failed}",
    ),
];

#[tokio::test]
async fn every_page_is_accessible_readable_and_without_errors() {
    let site = Site::start().await;
    let mut problems = Vec::new();
    for (name, viewer, path) in PAGES {
        let found = site.check_page(name, *viewer, path).await;
        problems.extend(found.iter().map(|problem| format!("{name}: {problem}")));
    }
    problems.extend(site.unlisted().await);
    let problems = problems.join("\n");
    assert!(problems.is_empty(), "\n{problems}");
}

/// A service with content for each page, and a browser for each kind of viewer.
struct Site {
    service: Service,
    pages: BTreeMap<Viewer, Page>,
    /// Placeholders in the addresses, and their values.
    placeholders: Vec<(&'static str, String)>,
}

impl Site {
    async fn start() -> Self {
        let service = Service::start(Backend::Sqlite);
        let chrome = Chrome::start().await;
        let link = unused_link(&service);
        let pages = BTreeMap::from([
            (SignedOut, chrome.page().await),
            (
                Member,
                joined(&service, &chrome, "ann@example.com", &[]).await,
            ),
            (Operator, operator(&service, &chrome).await),
        ]);
        let mut placeholders = vec![
            ("{first_link}", link),
            (
                "{invitation}",
                path(&invite(&service, "bob@example.com", &[])),
            ),
            (
                "{consent}",
                Client::new(&service).request_consent("sms:send sms:rates"),
            ),
            ("{message}", service.accept(&sms()).remove(0)),
            ("{failed}", service.accept(&failing_message()).remove(0)),
        ];
        placeholders.extend(account::sample_items(&service));
        Self {
            service,
            pages,
            placeholders,
        }
    }

    /// Pages in the navigation that are missing in the table.
    async fn unlisted(&self) -> Vec<String> {
        let mut unlisted = Vec::new();
        for viewer in [Member, Operator] {
            let page = &self.pages[&viewer];
            page.open(&self.service.server.url("/dashboard")).await;
            let links = "[...document.querySelectorAll('.sidebar a')].map((link) => link.pathname)";
            let links = page.evaluate(links).await;
            let links = links.as_array().expect("a list").iter();
            let links: Vec<&str> = links.map(|link| link.as_str().expect("a path")).collect();
            assert!(!links.is_empty(), "the navigation has no links");
            let is_listed = |link: &str| {
                let paths = PAGES.iter().map(|(_, _, path)| path.split('?').next());
                paths.flatten().any(|path| path == link)
            };
            let missing = links.into_iter().filter(|link| !is_listed(link));
            unlisted.extend(missing.map(|link| format!("{link} is not in the table")));
        }
        unlisted
    }

    /// The problems of a page.
    async fn check_page(&self, name: &str, viewer: Viewer, path: &str) -> Vec<String> {
        let page = &self.pages[&viewer];
        let placeholders = self.placeholders.iter();
        let path = placeholders.fold(path.to_owned(), |path, (name, value)| {
            path.replace(name, value)
        });
        page.open(&self.service.server.url(&path)).await;
        let mut problems = Vec::new();
        if page.status() != Some(200) || page.path().await != path {
            let text = page.text().await;
            let status = page.status();
            return vec![format!("{status:?} at {}: {text}", page.path().await)];
        }
        let heading = heading(page).await;
        if heading.is_empty() {
            problems.push("no heading".to_owned());
        }
        problems.extend(serious("light", page.findings().await));
        page.set_dark(true).await;
        problems.extend(serious("dark", page.findings().await));
        page.set_dark(false).await;
        page.save_screenshots(name).await;
        page.set_viewport(390, 844).await;
        if page.is_too_wide().await {
            problems.push("too wide for a phone".to_owned());
        }
        page.set_viewport(1280, 800).await;

        page.disable_scripts().await;
        page.reload().await;
        let without = self::heading(page).await;
        if without != heading {
            problems.push(format!("without scripts: {without:?}, not {heading:?}"));
        }
        page.enable_scripts().await;
        problems.extend(page.browser_errors());
        page.clear_browser_errors();
        problems
    }
}

/// A sign-in link that stays unused, because a used one leads to another page.
fn unused_link(service: &Service) -> String {
    let file = service.server.data_dir().join("switchboard.db");
    let file = rusqlite::Connection::open(file).expect("the file opens");
    file.busy_timeout(testkit::TEST_TIMEOUT).expect("it is set");
    let hash = TokenHash::from_secret("unused");
    let create =
        "INSERT INTO sign_in_link (hash, account_id, expires_us) VALUES (?1, 1, 4102444800000000)";
    file.execute(create, [hash.as_bytes()])
        .expect("a valid statement");
    "/dashboard/sign-in/unused".to_owned()
}

/// A message that fails and whose report cannot be delivered.
fn failing_message() -> Value {
    sms_with(&json!({ "to": "+447700900043", "dlrUrl": "http://127.0.0.1:1/" }))
}

async fn heading(page: &Page) -> String {
    let heading = page
        .evaluate("document.querySelector('main h1')?.innerText ?? ''")
        .await;
    heading.as_str().unwrap_or_default().to_owned()
}

fn serious(scheme: &str, findings: Vec<Finding>) -> impl Iterator<Item = String> {
    findings
        .into_iter()
        .filter(Finding::is_serious)
        .map(move |finding| format!("{scheme}: {finding}"))
}
