//! The filter of the list of messages.

use domain::message::code::Code;
use domain::ports::{MessageFilter, StateName};
use domain::{AccountId, MessageId, Msisdn};

use crate::kit::query::{Query, parse_utc};

const FIELDS: [&str; 9] = [
    "account", "to", "id", "from", "state", "channel", "error", "since", "until",
];

pub(super) struct Filters {
    filter: MessageFilter,
    pub(super) id: Option<MessageId>,
    pub(super) is_any: bool,
    /// The invalid fields and their problems.
    pub(super) problems: Vec<(&'static str, String)>,
}

impl Filters {
    pub(super) fn read(query: &Query) -> Self {
        let mut read = Self {
            filter: MessageFilter::default(),
            id: None,
            is_any: FIELDS.iter().any(|field| query.get(field).is_some()),
            problems: Vec::new(),
        };
        read.id = read.field(query, "id", "A message ID has digits only.", |id| {
            id.parse().ok()
        });
        let filter = MessageFilter {
            account: None,
            to: read.field(
                query,
                "to",
                "Write the number with its country code.",
                |to| Msisdn::parse(to).ok(),
            ),
            from: query.get("from").map(str::to_owned),
            state: read.field(query, "state", "There is no such state.", |state| {
                StateName::ALL.into_iter().find(|name| name.name() == state)
            }),
            channel: read.field(query, "channel", "There is no such channel.", |channel| {
                channel.parse().ok()
            }),
            error: read.field(query, "error", "There is no such error.", |code| {
                Code::new(code.parse().ok()?)
            }),
            since: read.field(query, "since", "From: give a date and a time.", parse_utc),
            until: read.field(query, "until", "Until: give a date and a time.", parse_utc),
        };
        Self { filter, ..read }
    }

    fn field<T>(
        &mut self,
        query: &Query,
        name: &'static str,
        rule: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = read(query.get(name)?);
        if value.is_none() {
            self.refuse(name, rule.to_owned());
        }
        value
    }

    pub(super) fn refuse(&mut self, field: &'static str, problem: String) {
        self.problems.push((field, problem));
    }

    pub(super) fn problem_of(&self, field: &str) -> Option<&str> {
        let mut problems = self.problems.iter();
        let (_, problem) = problems.find(|(wrong, _)| *wrong == field)?;
        Some(problem.as_str())
    }

    /// The filter for one account, or for all.
    pub(super) fn of(&self, account: Option<AccountId>) -> MessageFilter {
        MessageFilter {
            account,
            ..self.filter.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    fn read(query: &str) -> Filters {
        Filters::read(&Query::new("/dashboard/messages", query))
    }

    #[test]
    fn an_address_becomes_a_filter() {
        let account = AccountId::new(7).expect("in range");
        let filters = read(
            "to=%2B371+2000+0001&from=Acme&state=failed&channel=viber&error=43&since=2026-01-31T09:30&until=2026-02-01T00:00:30",
        );
        assert_eq!(filters.problems, []);
        let filter = filters.of(Some(account));
        assert_eq!(filter.account, Some(account));
        assert_eq!(
            filter.to.map(|to| to.to_string()).as_deref(),
            Some("+37120000001")
        );
        assert_eq!(filter.from.as_deref(), Some("Acme"));
        assert_eq!(filter.state, Some(StateName::Failed));
        assert_eq!(filter.channel, Some(domain::Channel::Viber));
        assert_eq!(filter.error, Some(Code::ABSENT));
        let shown = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
        assert_eq!(shown(filter.since), "2026-01-31T09:30:00Z");
        assert_eq!(shown(filter.until), "2026-02-01T00:00:30Z");
        assert!(!read("before=7").is_any, "a place in the list is no filter");
    }

    #[test]
    fn invalid_fields_are_reported() {
        for (query, field) in [
            ("to=nobody", "to"),
            ("id=12x", "id"),
            ("state=lost", "state"),
            ("channel=pigeon", "channel"),
            ("error=18", "error"),
            ("error=x", "error"),
            ("since=yesterday", "since"),
            ("until=2026-13-01T00:00", "until"),
        ] {
            let filters = read(query);
            assert!(filters.problem_of(field).is_some(), "{query}");
            assert!(filters.is_any, "{query}");
        }
        let all = read("to=nobody&id=12x&since=yesterday");
        assert_eq!(all.problems.len(), 3, "all at once");
    }
}
