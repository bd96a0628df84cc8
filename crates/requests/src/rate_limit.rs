//! Rate limits of accounts, as callers see them: 429 and the headers of draft-ietf-httpapi-ratelimit-headers.

use std::sync::{Arc, OnceLock};

use domain::AccountId;
use engine::identity::gate::Gate;
use engine::identity::rate::{Allowance, Requester};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The caller's remaining requests. The server puts an empty one into each request, [`count`] fills it in, and the
/// server writes it into the headers of the answer.
#[derive(Clone, Default)]
pub struct RateLimitStatus(Arc<OnceLock<Allowance>>);

/// Marks a request that this process makes to itself for a caller whose own request was counted.
#[derive(Clone, Copy)]
pub struct AlreadyCounted;

/// The account has made too many requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyRequests {
    per_second: u32,
}

impl TooManyRequests {
    /// Limits are per second, so waiting a second is enough.
    pub const RETRY_AFTER_S: u32 = 1;

    /// The message for the caller.
    pub fn message(self) -> String {
        let rate = self.per_second;
        format!("This account may make {rate} requests in a second; try again in a second.")
    }
}

/// Counts a request against the rate limit of its account.
pub fn count(
    gate: &Gate,
    request: &Extensions,
    account: AccountId,
    requester: Requester,
    per_second: u32,
) -> Result<(), TooManyRequests> {
    if request.get::<AlreadyCounted>().is_some() {
        return Ok(());
    }
    let Some(allowance) = gate.count(account, requester, per_second) else {
        return Ok(());
    };
    if let Some(status) = request.get::<RateLimitStatus>() {
        status.0.get_or_init(|| allowance);
    }
    if allowance.is_exceeded {
        return Err(TooManyRequests { per_second });
    }
    Ok(())
}

impl RateLimitStatus {
    /// Adds the headers, if the account has a limit.
    pub fn write(&self, headers: &mut HeaderMap) {
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
        let status = RateLimitStatus::default();
        let mut headers = HeaderMap::new();
        status.write(&mut headers);
        assert!(headers.is_empty(), "without a limit nothing is said");
        status.0.get_or_init(|| Allowance {
            per_second: 25,
            remaining: 3,
            whole_in_s: 1,
            is_exceeded: false,
        });
        status.write(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"account\";q=25;w=1");
        assert_eq!(headers["ratelimit"], "\"account\";r=3;t=1");
    }
}
