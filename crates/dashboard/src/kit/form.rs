//! Forms that browsers send.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use requests::body::read_within;

use crate::kit::failure::Failure;

/// Maximum size of a form before signing in.
const MAX_BYTES: usize = 16 * 1024;
/// Maximum size of a form after signing in: long texts, lists of numbers.
pub(crate) const MAX_BYTES_WITHIN: usize = 512 * 1024;
const TIME: Duration = Duration::from_secs(10);
/// For forms that are larger than `MAX_BYTES_WITHIN`.
const LONG_TIME: Duration = Duration::from_mins(1);

/// The fields of a form, in their order.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// The first field with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Moves the value of a field out of the form, so that secrets are not copied.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let found = self.0.iter_mut().find(|(key, _)| key == name);
        found.map_or_else(String::new, |(_, value)| std::mem::take(value))
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) async fn read(request: Request, max_bytes: usize) -> Result<Self, Failure> {
        let time = if max_bytes > MAX_BYTES_WITHIN {
            LONG_TIME
        } else {
            TIME
        };
        let body = read_within(request, max_bytes, time).await?;
        let fields = url::form_urlencoded::parse(&body);
        Ok(Self(fields.into_owned().collect()))
    }
}

impl<S: Sync> FromRequest<S> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Failure> {
        Self::read(request, MAX_BYTES).await
    }
}
