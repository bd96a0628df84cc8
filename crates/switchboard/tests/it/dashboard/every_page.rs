//! What holds of every page: nothing in the browser complains, everybody can use it, it fits a phone, it can be read
//! without scripts; and pictures of it, for people to look at, in `target/screenshots`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::axe::Finding;
use testkit::chrome::{Chrome, Page};

use super::{account, first_link, joined, operator};
use crate::people::client::Client;
use crate::people::{invite, path};
use crate::rest::service::{Service, sms, sms_with};

/// Who looks at a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// Not signed in.
    Nobody,
    Member,
    Operator,
}
use Who::{Member, Nobody, Operator};

/// Every page: the name of its pictures, who looks, and where it is. What stands in braces comes from [`Site::start`].
const PAGES: &[(&str, Who, &str)] = &[
    ("first-link", Nobody, "{first_link}"),
    ("sign-in", Nobody, "/dashboard/sign-in"),
    ("invitation", Nobody, "{invitation}"),
    ("overview", Member, "/dashboard"),
    ("consent", Member, "{consent}"),
    ("overview-operator", Operator, "/dashboard"),
    ("send", Member, "/dashboard/send"),
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
    ("sender-name", Member, "/dashboard/senders/name"),
    ("sender-number", Member, "/dashboard/senders/number"),
    ("numbers", Member, "/dashboard/numbers"),
    ("rates", Member, "/dashboard/rates"),
    ("lookups", Member, "/dashboard/lookups"),
    (
        "lookup-price",
        Member,
        "/dashboard/lookups?msisdn=%2B447700900800",
    ),
    ("lookup", Member, "/dashboard/lookups/{lookup}"),
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
        "settings-api-rotate",
        Operator,
        "/dashboard/settings/api/secret/rotate",
    ),
    ("settings-people", Operator, "/dashboard/settings/people"),
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
async fn every_page_is_quiet_accessible_and_readable() {
    let site = Site::start().await;
    let mut complaints = Vec::new();
    for (name, who, path) in PAGES {
        let found = site.look_at(name, *who, path).await;
        complaints.extend(found.iter().map(|found| format!("{name}: {found}")));
    }
    complaints.extend(site.unlisted().await);
    let complaints = complaints.join("\n");
    assert!(complaints.is_empty(), "\n{complaints}");
}

/// A service with something on each page, and somebody of each kind before a browser.
struct Site {
    service: Service,
    pages: BTreeMap<Who, Page>,
    /// What stands in braces in the addresses.
    known: Vec<(&'static str, String)>,
}

impl Site {
    async fn start() -> Self {
        let service = Service::start(Backend::Sqlite);
        let chrome = Chrome::start().await;
        let link = first_link(&service);
        let pages = BTreeMap::from([
            (Nobody, chrome.page().await),
            (
                Member,
                joined(&service, &chrome, "ann@example.com", &[]).await,
            ),
            (Operator, operator(&service, &chrome).await),
        ]);
        let mut known = vec![
            ("{first_link}", link),
            (
                "{invitation}",
                path(&invite(&service, "bob@example.com", &[])),
            ),
            ("{consent}", Client::new(&service).ask("sms:send sms:rates")),
            ("{message}", service.accept(&sms()).remove(0)),
            ("{failed}", service.accept(&absent()).remove(0)),
        ];
        known.extend(account::things(&service));
        Self {
            service,
            pages,
            known,
        }
    }

    /// Pages that the navigation leads to and that the table lacks.
    async fn unlisted(&self) -> Vec<String> {
        let mut unlisted = Vec::new();
        for who in [Member, Operator] {
            let page = &self.pages[&who];
            page.open(&self.service.server.url("/dashboard")).await;
            let ways = "[...document.querySelectorAll('.ways a')].map((way) => way.pathname)";
            let ways = page.evaluate(ways).await;
            let ways = ways.as_array().expect("a list").iter();
            let ways: Vec<&str> = ways.map(|way| way.as_str().expect("a path")).collect();
            assert!(!ways.is_empty(), "the navigation leads nowhere");
            let is_listed = |way: &str| {
                let paths = PAGES.iter().map(|(_, _, path)| path.split('?').next());
                paths.flatten().any(|path| path == way)
            };
            let missing = ways.into_iter().filter(|way| !is_listed(way));
            unlisted.extend(missing.map(|way| format!("{way} is not in the table")));
        }
        unlisted
    }

    /// All that is wrong with a page.
    async fn look_at(&self, name: &str, who: Who, path: &str) -> Vec<String> {
        let page = &self.pages[&who];
        let known = self.known.iter();
        let path = known.fold(path.to_owned(), |path, (name, value)| {
            path.replace(name, value)
        });
        page.open(&self.service.server.url(&path)).await;
        let mut wrong = Vec::new();
        if page.status() != Some(200) || page.path().await != path {
            let text = page.text().await;
            let status = page.status();
            return vec![format!("{status:?} at {}: {text}", page.path().await)];
        }
        let heading = heading(page).await;
        if heading.is_empty() {
            wrong.push("no heading".to_owned());
        }
        wrong.extend(serious("light", page.findings().await));
        page.set_dark(true).await;
        wrong.extend(serious("dark", page.findings().await));
        page.set_dark(false).await;
        page.picture(name).await;
        page.set_viewport(390, 844).await;
        if page.is_too_wide().await {
            wrong.push("too wide for a phone".to_owned());
        }
        page.set_viewport(1280, 800).await;

        page.without_scripts().await;
        page.reload().await;
        let without = self::heading(page).await;
        if without != heading {
            wrong.push(format!("without scripts: {without:?}, not {heading:?}"));
        }
        page.with_scripts().await;
        wrong.extend(page.noise());
        page.forget_noise();
        wrong
    }
}

/// A message that fails, and whose report nobody takes.
fn absent() -> Value {
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
