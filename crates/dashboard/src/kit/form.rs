//! Reading a form.

use std::time::Duration;

use axum::extract::{FromRequest, Request};

use crate::kit::failure::Failure;
use requests::body::read_within;

/// The largest form of whoever is not signed in.
const MAX_BYTES: usize = 16 * 1024;
/// The largest form behind the sign-in: texts of many parts, lists of numbers.
pub(crate) const MAX_BYTES_WITHIN: usize = 512 * 1024;
/// The time for it to arrive.
const TIME: Duration = Duration::from_secs(10);
/// The time for more than that.
const LONG_TIME: Duration = Duration::from_mins(1);

/// The fields of a form, in the order in which they came.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// The first field of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The first field of this name, taken out so that it is not copied about.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let found = self.0.iter_mut().find(|(key, _)| key == name);
        found.map_or_else(String::new, |(_, value)| std::mem::take(value))
    }

    /// Every field of this name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    /// Reads a form of at most so many bytes.
    pub(crate) async fn read(request: Request, max_bytes: usize) -> Result<Self, Failure> {
        let time = if max_bytes > MAX_BYTES_WITHIN {
            LONG_TIME
        } else {
            TIME
        };
        let body = read_within(request, max_bytes, time).await;
        let body = body.map_err(|_| Failure::Form)?;
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
