//! Which callbacks somebody wants to see, as the address of the page says it.

use domain::ports::{CallbackFilter, CallbackState};
use domain::{AccountId, Timestamp};
use url::form_urlencoded;

use crate::kit::query::Query;

/// The length of `2030-01-31T09:30`.
const MINUTES_LEN: usize = 16;

/// The states that can be chosen: what stands in the address, and what it is called.
pub(super) const STATES: [(&str, &str); 5] = [
    ("", "Not received"),
    ("waiting", "Waiting"),
    ("parked", "Parked"),
    ("received", "Received"),
    ("all", "All"),
];

/// What was chosen.
pub(super) struct Filters {
    pub(super) state: &'static str,
    pub(super) url: Option<String>,
    /// As they were typed.
    pub(super) from: String,
    pub(super) until: String,
    pub(super) problem: Option<&'static str>,
    since: Option<Timestamp>,
    before: Option<Timestamp>,
}

impl Filters {
    /// Reads what stands in an address.
    pub(super) fn read(query: &Query) -> Self {
        Self::of_fields(|name| query.get(name))
    }

    /// Reads fields, from wherever they are.
    pub(super) fn of_fields<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        let state = get("state").unwrap_or_default();
        let known = STATES.iter().find(|(name, _)| *name == state);
        let time = |name| get(name).map(|text| read_time(text).ok_or(()));
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

    /// Whether this state was chosen.
    pub(super) fn is_state(&self, name: &str) -> bool {
        self.state == name
    }

    /// Whether anything was chosen.
    pub(super) fn is_any(&self) -> bool {
        !self.state.is_empty() || self.is_narrow()
    }

    /// Whether it is said which ones, by address or time.
    pub(super) fn is_narrow(&self) -> bool {
        self.url.is_some() || self.since.is_some() || self.before.is_some()
    }

    /// Whether received ones are meant, too.
    pub(super) fn with_received(&self) -> bool {
        matches!(self.state, "received" | "all")
    }

    /// The same, for the callbacks of one account.
    pub(super) fn of(&self, account: AccountId) -> CallbackFilter {
        CallbackFilter {
            account: Some(account),
            id: None,
            url_prefix: self.url.clone(),
            from: self.since,
            until: self.before,
            with_done: self.with_received(),
        }
    }

    /// Whether one of this state is meant. The store tells received ones apart, not waiting ones from parked ones.
    pub(super) fn takes(&self, state: CallbackState) -> bool {
        match self.state {
            "waiting" => matches!(state, CallbackState::Waiting { .. }),
            "parked" => state == CallbackState::Parked,
            "received" => state == CallbackState::Done,
            _ => true,
        }
    }

    /// Where these are sent again; nowhere as long as nothing says which.
    pub(super) fn replay_address(&self) -> Option<String> {
        let is_whole = self.problem.is_none() && self.is_narrow();
        is_whole.then(|| address("/dashboard/callbacks/replay", &self.fields()))
    }

    /// What was chosen, by the names of the fields.
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

    /// The same, in words.
    pub(super) fn words(&self) -> Vec<String> {
        let url = self
            .url
            .as_ref()
            .map(|url| format!("to addresses that start with {url}"));
        let from = self
            .since
            .map(|_| format!("made at {} UTC or later", self.from));
        let until = self
            .before
            .map(|_| format!("made before {} UTC", self.until));
        [url, from, until].into_iter().flatten().collect()
    }
}

/// An address with these fields.
pub(super) fn address(path: &str, fields: &[(&str, &str)]) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(fields);
    format!("{path}?{}", pairs.finish())
}

/// A time in UTC, as browsers write what was typed.
fn read_time(text: &str) -> Option<Timestamp> {
    match text.len() {
        MINUTES_LEN => format!("{text}:00Z").parse().ok(),
        _ => format!("{text}Z").parse().ok(),
    }
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
        Filters::of_fields(get)
    }

    #[test]
    fn an_address_becomes_a_filter() {
        let account = AccountId::new(7).expect("in range");
        let all = filters(&[]);
        assert_eq!(
            all.of(account),
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
        let filter = some.of(account);
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
    fn a_time_that_is_none_is_said_and_sends_nothing_again() {
        let wrong = filters(&[("from", "yesterday"), ("url", "https://a.example")]);
        assert!(wrong.problem.is_some() && wrong.replay_address().is_none());
    }

    #[test]
    fn states_are_told_apart() {
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
            assert_eq!(states.map(|state| filters.takes(state)), takes, "{state}");
        }
    }
}
