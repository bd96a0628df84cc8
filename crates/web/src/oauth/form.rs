//! Form parameters of OAuth requests.

use std::collections::HashMap;

use super::refusal::Refusal;

/// Each parameter may occur once. Parameters without a value count as absent.
pub(super) struct Form(HashMap<String, String>);

impl Form {
    /// Reads `application/x-www-form-urlencoded`.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let mut values = HashMap::new();
        for (name, value) in url::form_urlencoded::parse(body) {
            if value.is_empty() {
                continue;
            }
            if values
                .insert(name.into_owned(), value.into_owned())
                .is_some()
            {
                return Err(Refusal::invalid_request("A parameter was sent twice."));
            }
        }
        Ok(Self(values))
    }

    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_may_occur_once() {
        for (body, value) in [
            ("a=1&b=2", Some(Some("1"))),
            ("b=2", Some(None)),
            ("a=", Some(None)),
            ("a", Some(None)),
            ("a=&a=1", Some(Some("1"))),
            ("a=%31", Some(Some("1"))),
            ("a=1&a=1", None),
            ("a=1&%61=2", None),
            ("b=1&a=3&b=2", None),
        ] {
            let parsed = Form::parse(body.as_bytes()).ok();
            let got = parsed.map(|mut form| form.take("a"));
            let got = got.as_ref().map(|value| value.as_deref());
            assert_eq!(got, value, "{body}");
        }
    }
}
