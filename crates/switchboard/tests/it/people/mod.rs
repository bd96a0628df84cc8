//! People in the real program: invitations, signing in and out, and consent to clients.

mod accounts;
pub(crate) mod browser;
pub(crate) mod client;
mod codes;
mod consent;
mod consent_page;
mod invitations;
mod managing;
mod operator;
pub(crate) mod security;
mod signing_in;

use serde_json::Value;

use crate::rest::on_both_backends;
use crate::rest::service::Service;
use browser::Browser;

/// A password that is accepted.
pub(crate) const PASSWORD: &str = "violet tram eleven";

/// What `invite create --json` prints.
pub(crate) fn invite(service: &Service, email: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["invite", "create", "--email", email, "--json"];
    arguments.extend_from_slice(more);
    service.server.cli_json(&arguments)
}

/// The path of an invitation's link.
pub(crate) fn path(invitation: &Value) -> String {
    let link = invitation["link"].as_str().expect("a link");
    let at = link.find("/dashboard/").expect("a page of the dashboard");
    link[at..].to_owned()
}

/// A browser in which an invitation was accepted.
pub(crate) fn joined<'a>(service: &'a Service, email: &str, more: &[&str]) -> Browser<'a> {
    let mut browser = Browser::new(service);
    let page = browser.get(&path(&invite(service, email, more)));
    assert_eq!(page.status, 200, "{}", page.text());
    let entered = browser.submit(&[("password", PASSWORD), ("repeated", PASSWORD)]);
    assert_eq!(entered.status, 303, "{}", entered.text());
    browser
}
