//! Builds the request for a message from its description.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use domain::delivery::QueuedMessage;
use domain::message::text::Coding;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use http::{Method, Request, Uri};
use http_body_util::Full;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::rule::RuleError;
use super::template::{JsonTemplate, Secrets, Template, Values, Variable};
use crate::exchange::AGENT;

static JSON: HeaderValue = HeaderValue::from_static("application/json");
static FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The request as it is configured. Texts are templates.
#[derive(Debug, Clone, Default)]
pub struct RequestDescription {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// User and password.
    pub basic: Option<(String, String)>,
    pub query: Vec<(String, Value)>,
    pub json: Option<Value>,
    pub form: Option<Vec<(String, Value)>>,
}

/// The request of a carrier.
#[derive(Debug, Clone)]
pub struct RequestRules {
    method: Method,
    url: Template,
    headers: Vec<(HeaderName, Template)>,
    basic: Option<(Template, Template)>,
    query: Vec<(String, Template)>,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    None,
    Json(JsonTemplate),
    Form(Vec<(String, Template)>),
}

/// A request that cannot be sent: its URL or a header is invalid with the values of this message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be built for this message")]
pub(super) struct Unbuildable;

impl RequestRules {
    /// Reads a description. `base_url` is put before a URL that is only a path.
    pub fn parse(
        description: &RequestDescription,
        base_url: Option<&Url>,
        secrets: &Secrets,
    ) -> Result<Self, RuleError> {
        let method = Method::from_bytes(description.method.as_bytes())
            .ok()
            .filter(|method| {
                [Method::GET, Method::POST, Method::PUT, Method::PATCH].contains(method)
            })
            .ok_or_else(|| {
                let given = &description.method;
                RuleError::new(
                    "request.method",
                    format!("'{given}' must be GET, POST, PUT or PATCH"),
                )
            })?;
        let body = match (&description.json, &description.form) {
            (Some(_), Some(_)) => {
                let both = "is set, and so is request.form; a request has one body";
                return Err(RuleError::new("request.json", both));
            }
            (Some(json), None) => Body::Json(parse_json(json, secrets)?),
            (None, Some(form)) => Body::Form(parse_pairs("request.form", form, secrets)?),
            (None, None) => Body::None,
        };
        if method == Method::GET && !matches!(body, Body::None) {
            let body = "is GET, which has no body; give request.query, or another method";
            return Err(RuleError::new("request.method", body));
        }
        let basic = description
            .basic
            .as_ref()
            .map(|(user, password)| -> Result<_, RuleError> {
                let parse = |key, text: &str| parse_text(key, text, secrets);
                Ok((
                    parse("request.basic.user", user)?,
                    parse("request.basic.password", password)?,
                ))
            });
        Ok(Self {
            method,
            url: parse_url(&description.url, base_url, secrets)?,
            headers: parse_headers(description, secrets)?,
            basic: basic.transpose()?,
            query: parse_pairs("request.query", &description.query, secrets)?,
            body,
        })
    }

    /// Whether the provider gets to know where to send its reports.
    pub fn has_report_url(&self) -> bool {
        self.has(Variable::ReportUrl)
    }

    /// Whether the provider gets to know our ID of the message.
    pub fn has_id(&self) -> bool {
        self.has(Variable::Id)
    }

    fn has(&self, variable: Variable) -> bool {
        let in_pairs = |pairs: &[(String, Template)]| pairs.iter().any(|(_, it)| it.has(variable));
        let in_body = match &self.body {
            Body::None => false,
            Body::Json(json) => json.has(variable),
            Body::Form(form) => in_pairs(form),
        };
        in_body
            || self.url.has(variable)
            || in_pairs(&self.query)
            || self.headers.iter().any(|(_, it)| it.has(variable))
    }

    /// Whether the request carries everything that the message has. One that would lose a header, binary coding, image
    /// or button must not be sent.
    pub(super) fn can_carry(&self, queued: &QueuedMessage) -> bool {
        let interactive = queued.interactive.as_ref();
        let needs = [
            (Variable::Udh, queued.udh.is_some()),
            (
                Variable::Coding,
                queued.shape.coding == Coding::Binary && !queued.text.is_empty(),
            ),
            (
                Variable::ImageUrl,
                interactive.is_some_and(|it| it.image.is_some()),
            ),
            (
                Variable::ButtonUrl,
                interactive.is_some_and(|it| it.action.is_some()),
            ),
        ];
        let mut needs = needs.into_iter().filter(|(_, is_needed)| *is_needed);
        needs.all(|(variable, _)| self.has(variable))
    }

    pub(super) fn build(&self, values: &Values<'_>) -> Result<Request<Full<Bytes>>, Unbuildable> {
        let (body, kind) = match &self.body {
            Body::None => (String::new(), None),
            Body::Json(json) => {
                let value = json.fill(values).unwrap_or_default();
                (value.to_string(), Some(&JSON))
            }
            Body::Form(form) => (encode_pairs(form, values), Some(&FORM)),
        };
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri(values)?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, JSON.clone());
        if let Some(kind) = kind {
            headers.insert(CONTENT_TYPE, kind.clone());
        }
        self.add_headers(headers, values)?;
        Ok(request)
    }

    /// Where the requests go, without what depends on the message.
    pub(super) fn host(&self) -> Option<Uri> {
        let mut url = Url::parse(self.url.fixed_start()).ok()?;
        url.set_path("/");
        url.set_query(None);
        Uri::try_from(String::from(url)).ok()
    }

    /// The URL for these values.
    pub(super) fn uri(&self, values: &Values<'_>) -> Result<Uri, Unbuildable> {
        let mut url = self.url.url(values);
        let query = encode_pairs(&self.query, values);
        if !query.is_empty() {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&query);
        }
        Uri::try_from(url).map_err(|_| Unbuildable)
    }

    fn add_headers(&self, headers: &mut HeaderMap, values: &Values<'_>) -> Result<(), Unbuildable> {
        for (name, template) in &self.headers {
            let mut value =
                HeaderValue::try_from(template.header(values)).map_err(|_| Unbuildable)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if let Some((user, password)) = &self.basic {
            let text = |it: &Template| it.text(values).unwrap_or_default();
            let pair = format!("{}:{}", text(user), text(password));
            let value = format!("Basic {}", STANDARD.encode(pair));
            let mut value = HeaderValue::try_from(value).map_err(|_| Unbuildable)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(())
    }
}

fn parse_text(
    key: impl fmt::Display,
    text: &str,
    secrets: &Secrets,
) -> Result<Template, RuleError> {
    Template::parse(text, secrets).map_err(|error| RuleError::new(key, error))
}

fn parse_json(json: &Value, secrets: &Secrets) -> Result<JsonTemplate, RuleError> {
    JsonTemplate::parse(json, secrets).map_err(|wrong| {
        let key = match wrong.path.as_str() {
            "" => "request.json".to_owned(),
            path => format!("request.json.{path}"),
        };
        RuleError::new(key, wrong.error)
    })
}

/// Fields of a form or a query. Each is a text, a number or a truth value.
fn parse_pairs(
    within: &str,
    pairs: &[(String, Value)],
    secrets: &Secrets,
) -> Result<Vec<(String, Template)>, RuleError> {
    let pair = |(name, value): &(String, Value)| {
        let key = format!("{within}.{name}");
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                return Err(RuleError::new(
                    key,
                    "must be a text, a number or true or false",
                ));
            }
        };
        Ok((name.clone(), parse_text(key, &text, secrets)?))
    };
    pairs.iter().map(pair).collect()
}

fn parse_headers(
    description: &RequestDescription,
    secrets: &Secrets,
) -> Result<Vec<(HeaderName, Template)>, RuleError> {
    let header = |(name, text): &(String, String)| {
        let key = format!("request.headers.{name}");
        let header: HeaderName = name
            .parse()
            .map_err(|_| RuleError::new(&key, format!("'{name}' is no name of a header")))?;
        // These follow from the URL and the body.
        if header == HOST || header == "content-length" || header == "transfer-encoding" {
            return Err(RuleError::new(
                key,
                "cannot be set; it follows from the request",
            ));
        }
        if header == AUTHORIZATION && description.basic.is_some() {
            return Err(RuleError::new(
                key,
                "is set, and so is request.basic; give one of them",
            ));
        }
        Ok((header, parse_text(key, text, secrets)?))
    };
    description.headers.iter().map(header).collect()
}

/// The host must not depend on the message.
fn parse_url(text: &str, base_url: Option<&Url>, secrets: &Secrets) -> Result<Template, RuleError> {
    let wrong = |problem: &str| RuleError::new("request.url", problem.to_owned());
    let whole = match base_url {
        Some(base) if text.starts_with('/') => {
            format!("{}{text}", base.as_str().trim_end_matches('/'))
        }
        _ => text.to_owned(),
    };
    let template = parse_text("request.url", &whole, secrets)?;
    let start = template.fixed_start();
    let not_web = "must begin with http:// or https:// and a host, or with / where base_url is set";
    let (scheme, behind) = start.split_once("://").ok_or_else(|| wrong(not_web))?;
    let has_host = template.is_fixed() || behind.contains('/');
    if !matches!(scheme, "http" | "https") || !has_host {
        return Err(wrong(not_web));
    }
    let url = Url::parse(start).map_err(|_| wrong(not_web))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must hold no user or password; give request.basic"));
    }
    if whole.contains('#') {
        return Err(wrong("must hold no fragment"));
    }
    let bad_character = "holds a character that no URL has; write it percent-encoded";
    Uri::try_from(template.outline()).map_err(|_| wrong(bad_character))?;
    Ok(template)
}

fn encode_pairs(pairs: &[(String, Template)], values: &Values<'_>) -> String {
    let mut encoded = Serializer::new(String::new());
    for (name, template) in pairs {
        if let Some(text) = template.text(values) {
            encoded.append_pair(name, &text);
        }
    }
    encoded.finish()
}

#[cfg(test)]
mod tests;
