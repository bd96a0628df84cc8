//! Reads the description of a request.

use http::header::{AUTHORIZATION, HOST, HeaderName};
use http::{Method, Uri};
use ring::hmac;
use serde_json::Value;
use url::Url;

use super::super::rule::RuleError;
use super::super::signing::{SigningDescription, SigningRules};
use super::super::template::{JsonTemplate, Secrets, Template, Vocabulary};
use super::super::values::Scope;
use super::{Body, RequestDescription, RequestRules};

/// Reads the texts of one table.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    /// The key of the table.
    pub(super) within: &'static str,
    pub(super) scope: Scope,
    pub(super) secrets: &'a Secrets,
}

impl Reader<'_> {
    pub(super) fn request(
        &self,
        description: &RequestDescription,
        base_url: Option<&Url>,
    ) -> Result<RequestRules, RuleError> {
        let method = self.method(&description.method)?;
        let body = match (&description.json, &description.form) {
            (Some(_), Some(_)) => {
                let both = format!(
                    "is set, and so is {}.form; a request has one body",
                    self.within
                );
                return Err(self.wrong("json", both));
            }
            (Some(json), None) => Body::Json(self.json("json", json)?),
            (None, Some(form)) => Body::Form(self.pairs("form", form)?),
            (None, None) => Body::None,
        };
        if method == Method::GET && !matches!(body, Body::None) {
            let problem = format!(
                "is GET, which has no body; give {}.query, or another method",
                self.within
            );
            return Err(self.wrong("method", problem));
        }
        let basic = description
            .basic
            .as_ref()
            .map(|(user, password)| -> Result<_, RuleError> {
                Ok((
                    self.text("basic.user", user)?,
                    self.text("basic.password", password)?,
                ))
            });
        let signing = description.hmac.as_ref().map(|hmac| self.signing(hmac));
        Ok(RequestRules {
            method,
            url: self.url(&description.url, base_url)?,
            headers: self.headers(description)?,
            basic: basic.transpose()?,
            query: self.pairs("query", &description.query)?,
            body,
            signing: signing.transpose()?,
            item: None,
        })
    }

    fn wrong(&self, key: &str, problem: impl std::fmt::Display) -> RuleError {
        RuleError::new(format!("{}.{key}", self.within), problem)
    }

    fn vocabulary(&self, scope: Scope) -> Vocabulary<'_> {
        Vocabulary {
            scope,
            secrets: self.secrets,
        }
    }

    fn text(&self, key: &str, text: &str) -> Result<Template, RuleError> {
        self.text_in(self.scope, key, text)
    }

    fn text_in(&self, scope: Scope, key: &str, text: &str) -> Result<Template, RuleError> {
        let template = Template::parse_in(text, self.vocabulary(scope));
        template.map_err(|error| self.wrong(key, error))
    }

    fn method(&self, given: &str) -> Result<Method, RuleError> {
        let method = Method::from_bytes(given.as_bytes()).ok();
        let allowed = [Method::GET, Method::POST, Method::PUT, Method::PATCH];
        let method = method.filter(|method| allowed.contains(method));
        let problem = || format!("'{given}' must be GET, POST, PUT or PATCH");
        method.ok_or_else(|| self.wrong("method", problem()))
    }

    pub(super) fn json(&self, table: &str, json: &Value) -> Result<JsonTemplate, RuleError> {
        JsonTemplate::parse(json, self.vocabulary(self.scope)).map_err(|wrong| {
            let key = match wrong.path.as_str() {
                "" => table.to_owned(),
                path => format!("{table}.{path}"),
            };
            self.wrong(&key, wrong.error)
        })
    }

    /// Fields of a form or a query. Each is a text, a number or a truth value.
    fn pairs(
        &self,
        table: &str,
        pairs: &[(String, Value)],
    ) -> Result<Vec<(String, Template)>, RuleError> {
        let pair = |(name, value): &(String, Value)| {
            let key = format!("{table}.{name}");
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => return Err(self.wrong(&key, "must be a text, a number or true or false")),
            };
            Ok((name.clone(), self.text(&key, &text)?))
        };
        pairs.iter().map(pair).collect()
    }

    fn header_name(&self, key: &str, name: &str) -> Result<HeaderName, RuleError> {
        let no_name = format!("'{name}' is not a header name");
        let header: HeaderName = name.parse().map_err(|_| self.wrong(key, no_name))?;
        // These follow from the URL and the body.
        if header == HOST || header == "content-length" || header == "transfer-encoding" {
            return Err(self.wrong(key, "cannot be set; it follows from the request"));
        }
        Ok(header)
    }

    fn headers(
        &self,
        description: &RequestDescription,
    ) -> Result<Vec<(HeaderName, Template)>, RuleError> {
        let header = |(name, text): &(String, String)| {
            let key = format!("headers.{name}");
            let header = self.header_name(&key, name)?;
            if header == AUTHORIZATION && description.basic.is_some() {
                let both = format!("is set, and so is {}.basic; give one of them", self.within);
                return Err(self.wrong(&key, both));
            }
            Ok((header, self.text(&key, text)?))
        };
        description.headers.iter().map(header).collect()
    }

    fn signing(&self, hmac: &SigningDescription) -> Result<SigningRules, RuleError> {
        let key = self.text("hmac.key", &hmac.key)?.fixed_text();
        let key = key
            .filter(|key| !key.is_empty())
            .ok_or_else(|| self.wrong("hmac.key", "must be a secret, such as {{ secret.key }}"))?;
        Ok(SigningRules {
            key: hmac::Key::new(hmac.hash.algorithm(), key.as_bytes()),
            encoding: hmac.encoding,
            signed: self.text_in(Scope::Signed, "hmac.signed", &hmac.signed)?,
            header: self.header_name("hmac.header", &hmac.header)?,
            value: self.text_in(Scope::Signature, "hmac.value", &hmac.value)?,
        })
    }

    /// The host must not depend on the message.
    fn url(&self, text: &str, base_url: Option<&Url>) -> Result<Template, RuleError> {
        let wrong = |problem: &str| self.wrong("url", problem);
        let whole = match base_url {
            Some(base) if text.starts_with('/') => {
                format!("{}{text}", base.as_str().trim_end_matches('/'))
            }
            _ => text.to_owned(),
        };
        let template = self.text("url", &whole)?;
        let start = template.fixed_start();
        let not_web =
            "must begin with http:// or https:// and a host, or with / where base_url is set";
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
}
