//! A minimal browser: cookies, and the form of the last page.

use std::collections::BTreeMap;

use testkit::http::Response;
use url::form_urlencoded;

use crate::rest::service::Service;

const FORM: &str = "application/x-www-form-urlencoded";

/// Stores cookies and the last page, and does not follow redirects by itself.
pub(crate) struct Browser<'a> {
    service: &'a Service,
    cookies: BTreeMap<String, String>,
    headers: Vec<(String, String)>,
    /// The path of the last page.
    path: String,
    /// The text of the last page.
    page: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(service: &'a Service) -> Self {
        Self {
            service,
            cookies: BTreeMap::new(),
            headers: Vec::new(),
            path: String::new(),
            page: String::new(),
        }
    }

    /// Sends this with every request.
    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    pub(crate) fn set_cookie(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    /// Opens a page.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        let response = self.request("GET", path, b"");
        path.clone_into(&mut self.path);
        self.page = response.text();
        response
    }

    /// Follows a redirect.
    pub(crate) fn follow(&mut self, response: &Response) -> Response {
        let location = response.header("location").expect("a location").to_owned();
        self.get(&location)
    }

    /// Fills in the last page's main form and sends it, with its hidden fields.
    pub(crate) fn submit(&mut self, fields: &[(&str, &str)]) -> Response {
        let (action, hidden) = self.form();
        let hidden: Vec<(&str, &str)> = hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let all: Vec<(&str, &str)> = hidden.iter().chain(fields).copied().collect();
        self.post(&action, &all)
    }

    /// Sends a form with these fields only.
    pub(crate) fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let response = self.request("POST", path, body.as_bytes());
        self.page = response.text();
        response
    }

    /// The hidden field of this name in the last page's main form.
    pub(crate) fn hidden(&self, name: &str) -> Option<String> {
        let (_, hidden) = self.form();
        let found = hidden.into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// The token of every form on the last page, after sign-in.
    pub(crate) fn token(&self) -> String {
        let main = after(&self.page, "<main").unwrap_or_else(|| panic!("no page: {}", self.page));
        let fields = hidden_fields(main);
        let token = fields.into_iter().find(|(name, _)| name == "form_token");
        token.unwrap_or_else(|| panic!("no form: {}", self.page)).1
    }

    /// Sends the sign-out form of the last page.
    pub(crate) fn sign_out(&mut self) -> Response {
        let form = after(&self.page, "<form class=\"who\"").expect("a sign-out form");
        let form = form.split("</form>").next().expect("its end");
        let hidden = hidden_fields(form);
        let fields: Vec<(&str, &str)> = hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        self.post("/dashboard/sign-out", &fields)
    }

    fn request(&mut self, method: &str, path: &str, body: &[u8]) -> Response {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let mut headers = vec![("Cookie", cookies.as_str())];
        if method == "POST" {
            headers.push(("Content-Type", FORM));
        }
        let more = self.headers.iter();
        headers.extend(more.map(|(name, value)| (name.as_str(), value.as_str())));
        let response = self.service.raw(method, path, &headers, body);
        let set = response
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie");
        for (_, cookie) in set {
            let pair = cookie.split(';').next().expect("name and value");
            let (name, value) = pair.split_once('=').expect("name and value");
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    /// The address and the hidden fields of the form in the page's main part.
    fn form(&self) -> (String, Vec<(String, String)>) {
        let main = after(&self.page, "<main").unwrap_or_else(|| panic!("no page: {}", self.page));
        let form = after(main, "<form").unwrap_or_else(|| panic!("no form: {}", self.page));
        let form = form.split("</form>").next().expect("its end");
        let (head, _) = form.split_once('>').expect("a whole tag");
        let action = attribute(head, "action").unwrap_or_else(|| self.path.clone());
        (action, hidden_fields(form))
    }
}

fn hidden_fields(form: &str) -> Vec<(String, String)> {
    form.split("<input ")
        .skip(1)
        .filter_map(|input| input.split('>').next())
        .filter(|input| input.contains("type=\"hidden\""))
        .map(|input| {
            let value = |name| attribute(input, name).expect("name and value");
            (value("name"), value("value"))
        })
        .collect()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = after(tag, &format!("{name}=\""))?;
    value.split('"').next().map(unescape)
}

/// The characters that templates escape.
fn unescape(text: &str) -> String {
    [
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#38;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (escaped, plain)| {
        text.replace(escaped, plain)
    })
}

fn after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    text.split_once(mark).map(|(_, rest)| rest)
}
