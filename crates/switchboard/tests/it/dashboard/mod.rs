//! The dashboard in a real browser: what people see and do, starting with the first link.
//!
//! A test starts a [`Service`] and a [`Chrome`], and lets a person sign in: [`operator`] by the link of the first
//! start, [`joined`] by an invitation. `testkit::chrome` says how pages are read and used. A new page gets a line in
//! [`every_page`].

mod account;
mod account_flows;
mod alerts;
pub(crate) mod asking;
mod bulk;
mod confirming;
mod every_page;
mod finding;
mod first_message;
mod first_start;
mod inbox;
mod live;
mod menu;
mod operator_pages;
mod phone;
mod pictures;
mod reporting;
mod search_field;
mod sending;
mod typed_times;
mod viber;

use testkit::chrome::{Chrome, Page};

use crate::people::{invite, path};
use crate::rest::service::Service;

/// A password that is accepted.
pub(crate) const PASSWORD: &str = "violet tram eleven";

/// The path of the operator's one-time link, as the first start prints it.
pub(crate) fn first_link(service: &Service) -> String {
    let output = service.server.output();
    let (_, rest) = output
        .split_once("/dashboard/sign-in/")
        .expect("the welcome has a link");
    let link = rest.split_whitespace().next().expect("the rest of a line");
    format!("/dashboard/sign-in/{link}")
}

/// A page on which the operator is signed in by the link of the first start, which works once for each service.
pub(crate) async fn operator(service: &Service, chrome: &Chrome) -> Page {
    let page = chrome.page().await;
    page.open(&service.server.url(&first_link(service))).await;
    page.click("main >> Sign in").await;
    page.wait_for_path("/dashboard").await;
    page
}

/// A page on which a person is signed in who accepted an invitation. `more` are further arguments of `invite create`,
/// such as `--role admin`.
pub(crate) async fn joined(service: &Service, chrome: &Chrome, email: &str, more: &[&str]) -> Page {
    let page = chrome.page().await;
    let link = path(&invite(service, email, more));
    page.open(&service.server.url(&link)).await;
    page.fill("Password", PASSWORD).await;
    page.fill("Repeat the password", PASSWORD).await;
    page.submit().await;
    page.wait_for_path("/dashboard").await;
    page
}
