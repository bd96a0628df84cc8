//! Request rates of accounts, as callers see them: 429 and the headers of draft-ietf-httpapi-ratelimit-headers.

use std::sync::{Arc, OnceLock};

use domain::AccountId;
use engine::identity::gate::Gate;
use engine::identity::rate::{Allowance, Requester};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What is left of the caller's allowance. The server puts one into each request, and what was noted there into the headers
/// of the answer.
#[derive(Clone, Default)]
pub(crate) struct RateNote(Arc<OnceLock<Allowance>>);

/// Marks a request of this process to itself, on behalf of a caller whose request was counted.
#[derive(Clone, Copy)]
pub(crate) struct Counted;

/// The account has made too many requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyRequests {
    per_second: u32,
}

impl TooManyRequests {
    /// Every allowance is for a second.
    pub(crate) const RETRY_AFTER_S: u32 = 1;

    pub(crate) fn message(self) -> String {
        let rate = self.per_second;
        format!("This account may make {rate} requests in a second; try again in a second.")
    }
}

/// Counts a request against its account's allowance.
pub(crate) fn count(
    gate: &Gate,
    request: &Extensions,
    account: AccountId,
    requester: Requester,
    per_second: u32,
) -> Result<(), TooManyRequests> {
    if request.get::<Counted>().is_some() {
        return Ok(());
    }
    let Some(allowance) = gate.count(account, requester, per_second) else {
        return Ok(());
    };
    if let Some(note) = request.get::<RateNote>() {
        note.0.get_or_init(|| allowance);
    }
    if allowance.is_exceeded {
        return Err(TooManyRequests { per_second });
    }
    Ok(())
}

impl RateNote {
    /// Tells the caller what is left, if it has a limit.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let Some(allowance) = self.0.get() else {
            return;
        };
        let policy = format!("\"account\";q={};w=1", allowance.per_second);
        let limit = format!(
            "\"account\";r={};t={}",
            allowance.remaining, allowance.whole_in_s
        );
        for (name, text) in [(POLICY, policy), (LIMIT, limit)] {
            let value = HeaderValue::try_from(text).expect("letters and digits");
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_are_those_of_the_draft() {
        let note = RateNote::default();
        let mut headers = HeaderMap::new();
        note.write(&mut headers);
        assert!(headers.is_empty(), "without a limit nothing is said");
        note.0.get_or_init(|| Allowance {
            per_second: 25,
            remaining: 3,
            whole_in_s: 1,
            is_exceeded: false,
        });
        note.write(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"account\";q=25;w=1");
        assert_eq!(headers["ratelimit"], "\"account\";r=3;t=1");
    }
}
