//! The filter of the list of callbacks.

use domain::ports::{CallbackFilter, CallbackState};
use domain::{AccountId, Timestamp};
use url::form_urlencoded;

use crate::kit::query::{Query, parse_utc};

/// The states to choose from: the value in the address, and the label.
pub(super) const STATES: [(&str, &str); 5] = [
    ("", "Not received"),
    ("waiting", "Waiting"),
    ("parked", "Parked"),
    ("received", "Received"),
    ("all", "All"),
];

pub(super) struct Filters {
    pub(super) state: &'static str,
    pub(super) url: Option<String>,
    /// As typed.
    pub(super) from: String,
    pub(super) until: String,
    pub(super) problem: Option<&'static str>,
    since: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl Filters {
    pub(super) fn read(query: &Query) -> Self {
        Self::from_fields(|name| query.get(name))
    }

    pub(super) fn from_fields<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        let state = get("state").unwrap_or_default();
        let known = STATES.iter().find(|(name, _)| *name == state);
        let time = |name| get(name).map(|text| parse_utc(text).ok_or(()));
        let (since, before) = (time("from"), time("until"));
        let is_wrong = [since, before].contains(&Some(Err(())));
        Self {
            state: known.map_or("", |(name, _)| *name),
            url: get("url").map(str::to_owned),
            from: get("from").unwrap_or_default().to_owned(),
            until: get("until").unwrap_or_default().to_owned(),
            problem: is_wrong.then_some("Write times like 2030-01-31T09:30, in UTC."),
            since: since.and_then(Result::ok),
            before: before.and_then(Result::ok),
        }
    }

    pub(super) fn is_state(&self, name: &str) -> bool {
        self.state == name
    }

    /// Whether anything is filtered at all.
    pub(super) fn is_any(&self) -> bool {
        !self.state.is_empty() || self.is_narrow()
    }

    /// Whether it filters by address or time.
    pub(super) fn is_narrow(&self) -> bool {
        self.url.is_some() || self.since.is_some() || self.before.is_some()
    }

    pub(super) fn with_received(&self) -> bool {
        matches!(self.state, "received" | "all")
    }

    pub(super) fn for_account(&self, account: AccountId) -> CallbackFilter {
        CallbackFilter {
            account: Some(account),
            id: None,
            url_prefix: self.url.clone(),
            from: self.since,
            until: self.before,
            with_done: self.with_received(),
        }
    }

    /// The store filters by received or not; waiting and parked callbacks are separated here.
    pub(super) fn matches(&self, state: CallbackState) -> bool {
        match self.state {
            "waiting" => matches!(state, CallbackState::Waiting { .. }),
            "parked" => state == CallbackState::Parked,
            "received" => state == CallbackState::Done,
            _ => true,
        }
    }

    /// The address that replays these callbacks; `None` if the filter would match all of them.
    pub(super) fn replay_address(&self) -> Option<String> {
        let is_whole = self.problem.is_none() && self.is_narrow();
        is_whole.then(|| address("/dashboard/callbacks/replay", &self.fields()))
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, &str)> {
        [
            ("state", self.state),
            ("url", self.url.as_deref().unwrap_or_default()),
            ("from", self.from.as_str()),
            ("until", self.until.as_str()),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
    }

    pub(super) fn words(&self) -> Vec<String> {
        let url = self
            .url
            .as_ref()
            .map(|url| format!("to addresses that start with {url}"));
        let from = self
            .since
            .map(|_| format!("created at {} UTC or later", self.from));
        let until = self
            .before
            .map(|_| format!("created before {} UTC", self.until));
        [url, from, until].into_iter().flatten().collect()
    }
}

pub(super) fn address(path: &str, fields: &[(&str, &str)]) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(fields);
    format!("{path}?{}", pairs.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(fields: &[(&'static str, &'static str)]) -> Filters {
        let get = |name: &str| {
            fields
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, v)| *v)
        };
        Filters::from_fields(get)
    }

    #[test]
    fn an_address_becomes_a_filter() {
        let account = AccountId::new(7).expect("in range");
        let all = filters(&[]);
        assert_eq!(
            all.for_account(account),
            CallbackFilter {
                account: Some(account),
                ..CallbackFilter::default()
            }
        );
        assert!(all.replay_address().is_none(), "that would be all of them");

        let some = filters(&[
            ("state", "all"),
            ("url", "https://a.example/x?y=z"),
            ("from", "2030-01-31T09:30"),
        ]);
        let filter = some.for_account(account);
        assert_eq!(filter.account, Some(account));
        assert!(filter.with_done && filter.until.is_none());
        assert_eq!(filter.from, "2030-01-31T09:30:00Z".parse().ok());
        assert_eq!(
            some.replay_address().as_deref(),
            Some(
                "/dashboard/callbacks/replay?state=all&url=https%3A%2F%2Fa.example%2Fx%3Fy%3Dz&from=2030-01-31T09%3A30"
            )
        );
    }

    #[test]
    fn an_invalid_time_is_reported_and_prevents_a_replay() {
        let wrong = filters(&[("from", "yesterday"), ("url", "https://a.example")]);
        assert!(wrong.problem.is_some() && wrong.replay_address().is_none());
    }

    #[test]
    fn states_are_distinguished() {
        let waiting = CallbackState::Waiting {
            due_at: Timestamp::UNIX_EPOCH,
        };
        for (state, takes) in [
            ("waiting", [true, false, false]),
            ("parked", [false, true, false]),
            ("received", [false, false, true]),
            ("all", [true, true, true]),
        ] {
            let filters = filters(&[("state", state)]);
            let states = [waiting, CallbackState::Parked, CallbackState::Done];
            assert_eq!(states.map(|state| filters.matches(state)), takes, "{state}");
        }
    }
}
