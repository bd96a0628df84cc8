//! A service with content for each page, a browser for each kind of viewer, and the checks of a page.

use std::collections::BTreeMap;
use std::time::Instant;

use domain::access::token::TokenHash;
use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::axe::Finding;
use testkit::chrome::{Chrome, Page};
use testkit::{Backend, TEST_TIMEOUT};

use crate::dashboard::operator_pages::{post, register};
use crate::dashboard::{account, first_link, joined, operator};
use crate::people::client::{Client, parameter};
use crate::people::{self, invite, path};
use crate::rest::service::{Service, sms, sms_with};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Viewer {
    SignedOut,
    Member,
    Operator,
    /// An admin of an account that has nothing yet.
    Newcomer,
}
use Viewer::{Member, Newcomer, Operator, SignedOut};

/// A form and the page that answers it: the name of the screenshots, the page with the form, the address that the form
/// is sent to (empty: that page), the fields, and the status and a text of the answer.
pub(super) type SentForm = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    u16,
    &'static str,
);

/// Sends a form as the page would that is open, but with any fields.
const SEND_FORM: &str = "(action, fields) => {
    const form = document.createElement('form');
    form.setAttribute('method', 'post');
    form.setAttribute('action', action);
    const token = document.querySelector('main input[name=form_token]');
    const hasToken = fields.some(([name]) => name === 'form_token');
    const all = token && !hasToken ? [['form_token', token.value], ...fields] : fields;
    for (const [name, value] of all) {
        const field = document.createElement('textarea');
        field.name = name;
        field.value = value;
        form.append(field);
    }
    document.body.append(form);
    window.isLeft = true;
    // Later, so that this call is answered before the page is left.
    setTimeout(() => form.submit());
}";

pub(super) struct Site {
    pub(super) service: Service,
    pages: BTreeMap<Viewer, Page>,
    /// Placeholders in the addresses, and their values.
    placeholders: Vec<(&'static str, String)>,
    problems: Vec<String>,
}

impl Site {
    pub(super) async fn start() -> Self {
        let service = Service::start(Backend::Sqlite);
        let chrome = Chrome::start().await;
        let link = unused_link(&service);
        let mut pages = BTreeMap::from([
            (SignedOut, chrome.page().await),
            (
                Member,
                joined(&service, &chrome, "ann@example.com", &[]).await,
            ),
            (Operator, operator(&service, &chrome).await),
        ]);
        let program = Client::with(&service, "Local Agent", "http://127.0.0.1:33418/cb");
        let mut placeholders = vec![
            ("{first_link}", link),
            ("{used_link}", first_link(&service)),
            (
                "{invitation}",
                path(&invite(&service, "bob@example.com", &[])),
            ),
            (
                "{new_password}",
                path(&invite(&service, "ann@example.com", &[])),
            ),
            (
                "{consent}",
                Client::new(&service).request_consent("sms:send sms:rates"),
            ),
            ("{consent_program}", program.request_consent("")),
            ("{client}", connected_client(&service)),
            ("{message}", service.accept(&sms()).remove(0)),
            ("{failed}", service.accept(&failing_message()).remove(0)),
            ("{refused}", service.accept(&refused_message()).remove(0)),
            (
                "{pending}",
                register(&service, "Acme Shop", "our shop", None),
            ),
        ];
        placeholders.extend(account::sample_items(&service));
        let user = ["smpp-user", "create", "--account", "main"];
        assert!(service.server.cli(&user).status.success());
        let too_long = sms_with(&json!({ "from": "much too long a name" }));
        assert_eq!(service.send(&too_long).status, 400, "for the log");

        let new = [
            "account",
            "create",
            "--name",
            "new",
            "--balance",
            "50",
            "--json",
        ];
        service.server.cli_json(&new);
        let admin = ["--role", "admin", "--account", "new"];
        let newcomer = joined(&service, &chrome, "new@example.com", &admin).await;
        pages.insert(Newcomer, newcomer);
        placeholders.push(("{join}", join_link(&service)));
        Self {
            service,
            pages,
            placeholders,
            problems: Vec::new(),
        }
    }

    pub(super) fn page(&self, viewer: Viewer) -> &Page {
        &self.pages[&viewer]
    }

    /// The address of a page of the service.
    pub(super) fn url(&self, path: &str) -> String {
        self.service.server.url(&self.fill(path))
    }

    /// Replaces placeholders.
    fn fill(&self, path: &str) -> String {
        let placeholders = self.placeholders.iter();
        placeholders.fold(path.to_owned(), |path, (name, value)| {
            path.replace(name, value)
        })
    }

    pub(super) fn add_problems(&mut self, name: &str, found: Vec<String>) {
        let found = found.into_iter();
        let found = found.map(|problem| format!("{name}: {problem}"));
        self.problems.extend(found);
    }

    pub(super) fn into_problems(self) -> String {
        self.problems.join("\n")
    }

    /// Checks a page with and without scripts.
    pub(super) async fn check_page(&mut self, name: &str, viewer: Viewer, path: &str) {
        let path = self.fill(path);
        let page = self.page(viewer);
        page.open(&self.service.server.url(&path)).await;
        let found = if page.status() != Some(200) || page.path().await != path {
            let text = page.text().await;
            let status = page.status();
            vec![format!("{status:?} at {}: {text}", page.path().await)]
        } else {
            let heading = heading(page).await;
            let mut found = inspect(page, name).await;
            page.disable_scripts().await;
            page.reload().await;
            let without = self::heading(page).await;
            if without != heading {
                found.push(format!("without scripts: {without:?}, not {heading:?}"));
            }
            page.enable_scripts().await;
            found.extend(page.browser_errors());
            page.clear_browser_errors();
            found
        };
        self.add_problems(name, found);
    }

    /// Opens a page and checks what is shown.
    pub(super) async fn check_answer(
        &mut self,
        name: &str,
        viewer: Viewer,
        path: &str,
        status: u16,
        shows: &str,
    ) {
        self.page(viewer).open(&self.url(path)).await;
        self.check_shown(name, viewer, status, shows).await;
    }

    /// Sends a form and checks the answer.
    pub(super) async fn check_form(&mut self, viewer: Viewer, form: &SentForm) {
        let (name, from, action, fields, status, shows) = form;
        self.send(viewer, from, action, fields).await;
        self.check_shown(name, viewer, *status, shows).await;
    }

    /// Sends a form of a page to an address; if it is empty, to the address of the page.
    pub(super) async fn send(
        &self,
        viewer: Viewer,
        from: &str,
        action: &str,
        fields: &[(&str, &str)],
    ) {
        let action = self.fill(if action.is_empty() { from } else { action });
        let page = self.page(viewer);
        page.open(&self.url(from)).await;
        let sent = format!("({SEND_FORM})({}, {})", json!(action), json!(fields));
        page.evaluate(&sent).await;
        page.wait_until("window.isLeft !== true && document.readyState === 'complete'")
            .await;
    }

    /// Checks the page that is open. It has this status and shows this text.
    pub(super) async fn check_shown(
        &mut self,
        name: &str,
        viewer: Viewer,
        status: u16,
        shows: &str,
    ) {
        let page = self.page(viewer);
        let text = page.text().await;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut found = if page.status() == Some(status) && text.contains(shows) {
            inspect(page, name).await
        } else {
            let (status, address) = (page.status(), page.path().await);
            vec![format!("{status:?} at {address}, no {shows:?}: {text}")]
        };
        let expected = format!("request: {status} from ");
        found.retain(|problem| !problem.starts_with(&expected));
        page.clear_browser_errors();
        self.add_problems(name, found);
    }

    /// Reloads a page until it shows a text.
    pub(super) async fn wait_for(&self, viewer: Viewer, path: &str, text: &str) {
        let page = self.page(viewer);
        let until = Instant::now() + TEST_TIMEOUT;
        page.open(&self.url(path)).await;
        loop {
            let shown = page.text().await;
            if shown.contains(text) {
                return;
            }
            assert!(Instant::now() < until, "no {text:?} at {path}: {shown}");
            page.reload().await;
        }
    }

    pub(super) fn database(&self) -> Connection {
        database(&self.service)
    }
}

/// The problems of the page that is open, and its screenshots.
async fn inspect(page: &Page, name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if heading(page).await.is_empty() {
        problems.push("no heading".to_owned());
    }
    problems.extend(found_in("light", page.findings().await));
    page.set_dark(true).await;
    problems.extend(found_in("dark", page.colour_findings().await));
    page.set_dark(false).await;
    page.save_screenshots(name).await;
    page.set_viewport(390, 844).await;
    if page.is_too_wide().await {
        problems.push("too wide for a phone".to_owned());
    }
    page.set_viewport(1280, 800).await;
    problems.extend(page.browser_errors());
    page.clear_browser_errors();
    problems
}

async fn heading(page: &Page) -> String {
    let heading = page
        .evaluate("document.querySelector('main h1')?.innerText ?? ''")
        .await;
    heading.as_str().unwrap_or_default().to_owned()
}

fn found_in(scheme: &str, findings: Vec<Finding>) -> impl Iterator<Item = String> {
    let findings = findings.into_iter();
    findings.map(move |finding| format!("{scheme}: {finding}"))
}

fn database(service: &Service) -> Connection {
    let file = service.server.data_dir().join("switchboard.db");
    let file = Connection::open(file).expect("the file opens");
    file.busy_timeout(TEST_TIMEOUT).expect("it is set");
    file
}

/// A sign-in link that stays unused, because a used one leads to another page.
fn unused_link(service: &Service) -> String {
    let hash = TokenHash::from_secret("unused");
    let create =
        "INSERT INTO sign_in_link (hash, account_id, expires_us) VALUES (?1, 1, 4102444800000000)";
    database(service)
        .execute(create, [hash.as_bytes()])
        .expect("a valid statement");
    "/dashboard/sign-in/unused".to_owned()
}

/// Connects a client to the first account, and returns the ID on its page.
fn connected_client(service: &Service) -> String {
    let more = ["--role", "admin", "--account", "main"];
    let mut browser = people::joined(service, "admin@example.com", &more);
    let client = Client::with(
        service,
        "Connected Agent",
        "https://client.example/callback",
    );
    browser.get(&client.request_consent("sms:send sms:rates"));
    let answered = browser.submit(&[
        ("scope", "sms:send"),
        ("daily_cap", "5"),
        ("decision", "approve"),
    ]);
    client.redeem(&parameter(&answered, "code").expect("a code"));
    let list = browser.get("/dashboard/settings/api").text();
    let (_, rest) = list
        .split_once("href=\"/dashboard/settings/api/clients/")
        .unwrap_or_else(|| panic!("no client: {list}"));
    rest.split('"').next().expect("an ID").to_owned()
}

/// The link by which a person who can sign in already joins the second account.
fn join_link(service: &Service) -> String {
    const LINK: &str = "/dashboard/invitation/";
    let more = ["--role", "admin", "--account", "new"];
    let mut browser = people::joined(service, "boss@example.com", &more);
    let fields = [
        ("action", "invite"),
        ("email", "ann@example.com"),
        ("role", "member"),
    ];
    let page = post(&mut browser, "/dashboard/settings/people", &fields).text();
    let (_, link) = page
        .split_once(LINK)
        .unwrap_or_else(|| panic!("no link: {page}"));
    let link = link.split('<').next().expect("its end");
    format!("{LINK}{link}")
}

/// A message that fails and whose report cannot be delivered.
fn failing_message() -> Value {
    sms_with(&json!({ "to": "+447700900043", "dlrUrl": "http://127.0.0.1:1/" }))
}

/// The simulated network refuses messages to this number, so they are refunded.
fn refused_message() -> Value {
    sms_with(&json!({ "to": "+447700900060" }))
}
