//! The query string of a page: filters and the cursor of a list.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use domain::Timestamp;
use http::request::Parts;
use url::form_urlencoded;

/// The field with the notice of a form that led to a page; `Session::said` reads it.
pub(crate) const SAID: &str = "said";
const MINUTES_LEN: usize = "2030-01-31T09:30".len();

/// The fields of a query string. The first field of a name counts; empty fields are dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    path: String,
    fields: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn new(path: &str, query: &str) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_new = fields.iter().all(|(known, _)| *known != name);
            if is_new && !value.trim().is_empty() {
                fields.push((name.into_owned(), value.trim().to_owned()));
            }
        }
        Self {
            path: path.to_owned(),
            fields,
        }
    }

    /// A field, without surrounding white space; `None` if it is missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A field, or an empty text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// The same fields for another page.
    pub(crate) fn at(self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self
        }
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn address(&self) -> String {
        self.address_with("", None)
    }

    /// The address with one field set, or removed. Notices are not repeated on other pages.
    pub(crate) fn address_with(&self, name: &str, value: Option<&str>) -> String {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        let others = self.fields.iter();
        let others = others.filter(|(known, _)| known != name && known != SAID);
        pairs.extend_pairs(others);
        if let Some(value) = value {
            pairs.append_pair(name, value);
        }
        match pairs.finish() {
            query if query.is_empty() => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self::new(parts.uri.path(), query))
    }
}

/// Reads a time in UTC. Browsers leave the seconds out: `2030-01-31T09:30`.
pub(crate) fn parse_utc(text: &str) -> Option<Timestamp> {
    if text.len() == MINUTES_LEN {
        return format!("{text}:00Z").parse().ok();
    }
    format!("{text}Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_fields_round_trip() {
        let query = Query::new("/dashboard/messages", "to=%2B371+2&state=&to=9&from=A%26B");
        assert_eq!(query.get("to"), Some("+371 2"));
        assert_eq!(query.get("state"), None);
        assert_eq!(
            query.address_with("before", Some("7")),
            "/dashboard/messages?to=%2B371+2&from=A%26B&before=7"
        );
        assert_eq!(Query::new("/x", "a=1").address_with("a", None), "/x");
        assert_eq!(
            query.at("/live").without("from").address(),
            "/live?to=%2B371+2"
        );
        let noted = Query::new("/x", "said=added.00&to=1");
        assert_eq!(noted.address_with("before", Some("7")), "/x?to=1&before=7");
    }
}
