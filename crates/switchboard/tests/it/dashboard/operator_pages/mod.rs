//! The operator's pages.

mod accounts;
mod acting;
mod hostile;
mod hosts;
mod plans;
mod prices;
mod refusals;
mod senders;
mod smpp_users;
mod viewing;

use std::fmt::Write as _;

use domain::access::token::TokenHash;
use serde_json::{Value, json};
use testkit::http::Response;

use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::service::Service;

/// A price list with one row for all countries.
pub(super) fn price_for_all(rate: &str) -> String {
    format!("CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n,,Default,Default,,,{rate}\n")
}

/// A browser in which an operator is signed in who belongs to no account.
pub(super) fn operator(service: &Service) -> Browser<'_> {
    joined(service, "op@example.com", &["--role", "operator"])
}

/// The form token of this browser's pages, so that a request is not refused for lack of it.
pub(super) fn form_token(browser: &Browser<'_>) -> String {
    let session = browser.cookie("switchboard").expect("a session");
    let hash = TokenHash::from_secret(&format!("form\ndashboard\n{session}"));
    hash.as_bytes()
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
            text
        })
}

/// Sends a form as a page of this browser would.
pub(super) fn post(browser: &mut Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Response {
    let token = form_token(browser);
    let mut all = vec![("form_token", token.as_str())];
    all.extend_from_slice(fields);
    browser.post(path, &all)
}

/// Registers a name and returns its ID.
pub(super) fn register(
    service: &Service,
    name: &str,
    description: &str,
    url: Option<&str>,
) -> String {
    let body = json!({
        "name": name, "type": "AlphaNumeric", "category": "Brand", "categoryDescription": description, "notificationUrl": url,
    });
    let body = body.to_string();
    let response = service.call_as(&service.token, "POST", "/senderId", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    response.text()
}

/// Everything that operator pages can change.
pub(super) fn current_state(service: &Service) -> Value {
    let list = |arguments: &[&str]| service.server.cli_json(arguments);
    json!({
        "accounts": list(&["account", "list", "--json"]),
        "senders": list(&["sender", "list", "--json"]),
        "prices": list(&["rates", "history", "--json"]),
        "numbers": list(&["number", "list", "--json"]),
        "carriers": list(&["carrier", "history", "--json"]),
    })
}
