//! Builds the request for a message from its description.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use domain::Timestamp;
use domain::delivery::QueuedMessage;
use domain::message::text::Coding;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use http::{Method, Request, Uri};
use http_body_util::Full;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::rule::RuleError;
use super::signing::{SigningDescription, SigningRules};
use super::template::{JsonTemplate, Secrets, Template};
use super::values::{Scope, Values, Variable};
use crate::exchange::AGENT;

mod description;

use self::description::Reader;

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
    pub hmac: Option<SigningDescription>,
    /// What a request for several messages has for each of them.
    pub item: Option<Value>,
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
    signing: Option<SigningRules>,
    item: Option<JsonTemplate>,
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
    /// Reads the description of the request for a message. `base_url` is put before a URL that is only a path.
    pub fn parse(
        description: &RequestDescription,
        base_url: Option<&Url>,
        secrets: &Secrets,
    ) -> Result<Self, RuleError> {
        let scope = match description.item {
            Some(_) => Scope::Batch,
            None => Scope::Message,
        };
        let reader = Reader {
            within: "request",
            scope,
            secrets,
        };
        let mut rules = reader.request(description, base_url)?;
        if let Some(item) = &description.item {
            rules.check_shared()?;
            let reader = Reader {
                within: "batch",
                scope: Scope::Message,
                secrets,
            };
            rules.item = Some(reader.json("item", item)?);
        }
        Ok(rules)
    }

    /// A request for several messages must have nothing that only one of them has.
    fn check_shared(&self) -> Result<(), RuleError> {
        for (name, variable) in [
            ("to", Variable::To),
            ("to_digits", Variable::ToDigits),
            ("id", Variable::Id),
            ("report_url", Variable::ReportUrl),
        ] {
            if self.has(variable) {
                let problem = format!(
                    "'{{{{ {name} }}}}' is only for one message of a batch; it belongs in batch.item"
                );
                return Err(RuleError::new("request", problem));
            }
        }
        if !self.has(Variable::Items) {
            let problem = "has no {{ items }}, where the messages of a batch go";
            return Err(RuleError::new("request", problem));
        }
        Ok(())
    }

    /// Reads the description of the request that asks for a report.
    pub fn parse_poll(
        description: &RequestDescription,
        base_url: Option<&Url>,
        secrets: &Secrets,
    ) -> Result<Self, RuleError> {
        let reader = Reader {
            within: "poll.request",
            scope: Scope::Poll,
            secrets,
        };
        reader.request(description, base_url)
    }

    /// Whether the provider gets to know where to send its reports.
    pub fn has_report_url(&self) -> bool {
        self.has(Variable::ReportUrl)
    }

    /// Whether the provider gets to know our ID of the message.
    pub fn has_id(&self) -> bool {
        self.has(Variable::Id)
    }

    /// Whether the request needs the provider's ID of the message.
    pub fn has_provider_id(&self) -> bool {
        self.has(Variable::ProviderId)
    }

    fn has(&self, variable: Variable) -> bool {
        let in_pairs = |pairs: &[(String, Template)]| pairs.iter().any(|(_, it)| it.has(variable));
        let in_body = match &self.body {
            Body::None => false,
            Body::Json(json) => json.has(variable),
            Body::Form(form) => in_pairs(form),
        };
        in_body
            || self.item.as_ref().is_some_and(|item| item.has(variable))
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

    /// What a request for several messages has for this one.
    pub(super) fn item(&self, values: &Values<'_>) -> Option<Value> {
        self.item.as_ref()?.fill(values)
    }

    /// What the request has apart from its items and the time. Messages with the same outline can go together.
    pub(super) fn outline(&self, values: &Values<'_>) -> Result<String, Unbuildable> {
        let values = Values {
            at: Timestamp::UNIX_EPOCH,
            ..*values
        };
        let mut headers = HeaderMap::new();
        self.add_headers(&mut headers, &values)?;
        let headers: Vec<&[u8]> = headers.values().map(HeaderValue::as_bytes).collect();
        let headers = String::from_utf8_lossy(&headers.join(&b'\n')).into_owned();
        let (body, _) = self.body(&values);
        Ok(format!("{}\n{headers}\n{body}", self.uri(&values)?))
    }

    /// The body, with its content type.
    fn body(&self, values: &Values<'_>) -> (String, Option<&'static HeaderValue>) {
        match &self.body {
            Body::None => (String::new(), None),
            Body::Json(json) => {
                let value = json.fill(values).unwrap_or_default();
                (value.to_string(), Some(&JSON))
            }
            Body::Form(form) => (encode_pairs(form, values), Some(&FORM)),
        }
    }

    pub(super) fn build(&self, values: &Values<'_>) -> Result<Request<Full<Bytes>>, Unbuildable> {
        let (body, kind) = self.body(values);
        let uri = self.uri(values)?;
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, JSON.clone());
        if let Some(kind) = kind {
            headers.insert(CONTENT_TYPE, kind.clone());
        }
        self.add_headers(&mut headers, values)?;
        if let Some(signing) = &self.signing {
            let signed = signing.sign(&self.method, &uri, &body, values, &mut headers);
            signed.ok_or(Unbuildable)?;
        }
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
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
