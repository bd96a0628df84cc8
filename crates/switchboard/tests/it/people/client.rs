//! An OAuth client that asks for consent.

use serde_json::{Value, json};
use testkit::http::Response;
use url::{Url, form_urlencoded};

use super::Browser;
use crate::rest::service::Service;

/// The pair of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(super) const REDIRECT: &str = "https://client.example/callback";

/// A registered client.
pub(crate) struct Client<'a> {
    service: &'a Service,
    pub(crate) id: String,
    redirect: String,
}

impl<'a> Client<'a> {
    /// A client whose redirect is a website.
    pub(crate) fn new(service: &'a Service) -> Self {
        Self::with(service, "Helpful Agent", REDIRECT)
    }

    /// A client with this name and redirect.
    pub(crate) fn with(service: &'a Service, name: &str, redirect: &str) -> Self {
        let metadata = json!({ "client_name": name, "redirect_uris": [redirect] });
        let headers = [("Content-Type", "application/json")];
        let body = metadata.to_string();
        let answer = service.raw("POST", "/oauth/register", &headers, body.as_bytes());
        assert_eq!(answer.status, 201, "{}", answer.text());
        let id = answer.json()["client_id"].as_str().map(str::to_owned);
        Self {
            service,
            id: id.expect("an ID"),
            redirect: redirect.to_owned(),
        }
    }

    /// Requests scopes, and returns the path of the consent page.
    pub(crate) fn request_consent(&self, scopes: &str) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("client_id", &self.id)
            .append_pair("redirect_uri", &self.redirect)
            .append_pair("response_type", "code")
            .append_pair("state", "the state")
            .append_pair("scope", scopes)
            .append_pair("code_challenge", CHALLENGE)
            .append_pair("code_challenge_method", "S256")
            .finish();
        let path = format!("/oauth/authorize?{query}");
        let answer = self.service.raw("GET", &path, &[], b"");
        let consent = answer.header("location").expect("a consent page");
        let consent = Url::parse(consent).expect("a whole address");
        consent.path().to_owned()
    }

    /// Redeems a code.
    pub(crate) fn redeem(&self, code: &str) -> Value {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("client_id", &self.id)
            .append_pair("redirect_uri", &self.redirect)
            .append_pair("code", code)
            .append_pair("code_verifier", VERIFIER)
            .finish();
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let answer = self
            .service
            .raw("POST", "/oauth/token", &headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

/// Whether a request still waits for an answer, seen by a person who could answer it.
pub(super) fn is_pending(browser: &mut Browser<'_>, path: &str) -> bool {
    let page = browser.get(path);
    match page.status {
        200 => true,
        404 => false,
        _ => panic!("{}: {}", page.status, page.text()),
    }
}

/// A parameter of the address that an answer redirects to.
pub(crate) fn parameter(response: &Response, name: &str) -> Option<String> {
    let address = response.header("location").expect("a location");
    let address = Url::parse(address).expect("a whole address");
    let found = address.query_pairs().find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}
