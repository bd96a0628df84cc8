//! Rate limits of accounts, as callers see them: 429 and the headers of draft-ietf-httpapi-ratelimit-headers.

use domain::AccountId;
use engine::identity::gate::Gate;
use engine::identity::rate::Requester;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};

use crate::RequestNotes;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

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

/// Counts a request against the rate limit of its account, and notes what is left for [`write()`].
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
    RequestNotes::set_allowance(request, allowance);
    if allowance.is_exceeded {
        return Err(TooManyRequests { per_second });
    }
    Ok(())
}

/// Adds the headers to the answer, if the account has a limit.
pub fn write(notes: &RequestNotes, headers: &mut HeaderMap) {
    let Some(allowance) = notes.allowance() else {
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

#[cfg(test)]
mod tests {
    use engine::identity::rate::Allowance;

    use super::*;

    #[test]
    fn the_headers_are_those_of_the_draft() {
        let notes = RequestNotes::default();
        let mut request = Extensions::new();
        request.insert(notes.clone());
        let mut headers = HeaderMap::new();
        write(&notes, &mut headers);
        assert!(headers.is_empty(), "without a limit nothing is said");
        let allowance = Allowance {
            per_second: 25,
            remaining: 3,
            whole_in_s: 1,
            is_exceeded: false,
        };
        RequestNotes::set_allowance(&request, allowance);
        write(&notes, &mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"account\";q=25;w=1");
        assert_eq!(headers["ratelimit"], "\"account\";r=3;t=1");
    }
}
