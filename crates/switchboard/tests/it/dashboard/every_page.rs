//! Checks of every page: no errors in the browser, accessible, fits a phone, readable without scripts. With
//! `SWITCHBOARD_TEST_SCREENSHOTS=1`, screenshots are written to `target/screenshots`.

mod account;
mod asking;
mod carriers;
mod operator;
mod signing_in;
mod site;

use std::collections::BTreeSet;

use site::Site;
use site::Viewer::{self, Member, Newcomer, Operator, SignedOut};

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
        "operator-smpp-user",
        Operator,
        "/dashboard/operator/smpp-users/1",
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
    ("operator-traffic", Operator, "/dashboard/operator/traffic"),
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
    ("search-empty", Member, "/dashboard/search"),
    (
        "search-found",
        Operator,
        "/dashboard/search?q=%2B37120000001",
    ),
    ("consent-program", Member, "{consent_program}"),
    ("new-password", SignedOut, "{new_password}"),
    ("join", Member, "{join}"),
    ("sender-pending", Member, "/dashboard/senders/{pending}"),
    (
        "settings-api-edit",
        Operator,
        "/dashboard/settings/api/tokens/1/edit",
    ),
    (
        "settings-api-rotate-token",
        Operator,
        "/dashboard/settings/api/tokens/1/rotate",
    ),
    (
        "settings-api-client",
        Operator,
        "/dashboard/settings/api/clients/{client}",
    ),
];

/// Pages of an account that has nothing yet, and searches without a result.
const EMPTY: &[(&str, Viewer, &str)] = &[
    ("empty-overview", Newcomer, "/dashboard"),
    ("empty-messages", Newcomer, "/dashboard/messages"),
    ("empty-inbox", Newcomer, "/dashboard/inbox"),
    ("empty-scheduled", Newcomer, "/dashboard/scheduled"),
    ("empty-callbacks", Newcomer, "/dashboard/callbacks"),
    ("empty-lookups", Newcomer, "/dashboard/lookups"),
    ("empty-verify", Newcomer, "/dashboard/verify"),
    ("empty-senders", Newcomer, "/dashboard/senders"),
    ("empty-opt-outs", Newcomer, "/dashboard/opt-outs"),
    ("empty-templates", Newcomer, "/dashboard/templates"),
    ("empty-api", Newcomer, "/dashboard/settings/api"),
    (
        "empty-accounts",
        Operator,
        "/dashboard/operator/accounts?name=nobody",
    ),
    (
        "empty-sender-review",
        Operator,
        "/dashboard/operator/senders?state=revoked",
    ),
    (
        "empty-prices",
        Operator,
        "/dashboard/operator/prices?search=nowhere",
    ),
];

/// Pages that say why there is nothing else: the name, the viewer, the address, the status and a text.
const REFUSED: &[(&str, Viewer, &str, u16, &str)] = &[
    (
        "not-found",
        Member,
        "/dashboard/no/such/page",
        404,
        "Page not found",
    ),
    (
        "not-found-signed-out",
        SignedOut,
        "/dashboard/no/such/page",
        404,
        "Page not found",
    ),
    (
        "no-access",
        Member,
        "/dashboard/operator/accounts",
        403,
        "You do not have access to this page",
    ),
    (
        "message-missing",
        Member,
        "/dashboard/messages/0",
        404,
        "Not found",
    ),
    (
        "messages-refused",
        Member,
        "/dashboard/messages?to=nobody&state=lost",
        422,
        "Messages",
    ),
    (
        "consent-over",
        Member,
        "/oauth/consent/unknown",
        404,
        "This request is no longer valid",
    ),
    (
        "oauth-refused",
        SignedOut,
        "/oauth/authorize?client_id=nobody",
        400,
        "This connection cannot be made",
    ),
    (
        "link-used",
        SignedOut,
        "{used_link}",
        404,
        "This link does not work",
    ),
];

/// The addresses and names of the links in the navigation.
const LINKS: &str = "[...document.querySelectorAll('.sidebar a')]
    .map((link) => [link.pathname, link.textContent.trim()])";

#[tokio::test]
async fn every_page_is_accessible_readable_and_without_errors() {
    let mut site = Site::start().await;
    for (name, viewer, path) in PAGES.iter().chain(EMPTY) {
        site.check_page(name, *viewer, path).await;
    }
    for (name, viewer, path, status, shows) in REFUSED {
        site.check_answer(name, *viewer, path, *status, shows).await;
    }
    account::check(&mut site).await;
    signing_in::check(&mut site).await;
    // From here on, the operator has a password.
    operator::check(&mut site).await;
    // The simulated network ends with the first carrier.
    carriers::check(&mut site).await;
    asking::check(&mut site).await;
    check_navigation(&mut site).await;
    check_failure(&mut site).await;
    let problems = site.into_problems();
    assert!(problems.is_empty(), "\n{problems}");
}

/// Pages in the navigation that are missing in the table, and two that have the same name.
async fn check_navigation(site: &mut Site) {
    for viewer in [Member, Operator] {
        let page = site.page(viewer);
        page.open(&site.url("/dashboard")).await;
        let links = page.evaluate(LINKS).await;
        let links: Vec<(String, String)> = serde_json::from_value(links).expect("a list");
        assert!(!links.is_empty(), "the navigation has no links");
        let names: BTreeSet<&String> = links.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len(), links.len(), "each name once: {links:?}");
        let is_listed = |link: &str| {
            let paths = PAGES.iter().map(|(_, _, path)| path.split('?').next());
            paths.flatten().any(|path| path == link)
        };
        let missing = links.iter().filter(|(link, _)| !is_listed(link));
        let missing = missing.map(|(link, _)| format!("{link} is not in the table"));
        site.add_problems("navigation", missing.collect());
    }
}

/// The page for a failure of the database, which lasts to the end of the test.
async fn check_failure(site: &mut Site) {
    site.database()
        .execute_batch("ALTER TABLE text_template RENAME TO lost")
        .expect("a valid statement");
    let (path, shows) = ("/dashboard/templates", "Something went wrong");
    site.check_answer("failure", Newcomer, path, 500, shows)
        .await;
}
