//! What messages are looked for by, as an address names it.

use domain::message::code::Code;
use domain::ports::{MessageFilter, StateName};
use domain::{AccountId, MessageId, Msisdn, Timestamp};

use crate::kit::query::Query;

/// The fields.
const FIELDS: [&str; 8] = [
    "to", "id", "from", "state", "channel", "error", "since", "until",
];
/// A time without seconds, as browsers write it: `2030-01-31T09:30`.
const MINUTES_LEN: usize = "2030-01-31T09:30".len();

/// Which messages are looked for.
pub(super) struct Filters {
    filter: MessageFilter,
    /// Exactly this one.
    pub(super) id: Option<MessageId>,
    /// Whether anything is asked for at all.
    pub(super) is_any: bool,
    /// The field that cannot be read, and why.
    pub(super) problem: Option<(&'static str, String)>,
}

impl Filters {
    pub(super) fn read(query: &Query) -> Self {
        let mut read = Self {
            filter: MessageFilter::default(),
            id: None,
            is_any: FIELDS.iter().any(|field| query.get(field).is_some()),
            problem: None,
        };
        read.id = read.field(query, "id", "Write digits only.", |id| id.parse().ok());
        let filter = MessageFilter {
            account: None,
            to: read.field(query, "to", "Write it with its country code.", |to| {
                Msisdn::parse(to).ok()
            }),
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
            since: read.field(query, "since", "Give a date and a time.", time),
            until: read.field(query, "until", "Give a date and a time.", time),
        };
        Self { filter, ..read }
    }

    /// Reads a field, where there is one.
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

    /// Says what is wrong with a field.
    pub(super) fn refuse(&mut self, field: &'static str, problem: String) {
        self.problem = Some((field, problem));
    }

    /// What is wrong with this field.
    pub(super) fn problem_of(&self, field: &str) -> Option<&str> {
        let (wrong, problem) = self.problem.as_ref()?;
        (*wrong == field).then_some(problem.as_str())
    }

    /// The same for the messages of one account.
    pub(super) fn of(&self, account: AccountId) -> MessageFilter {
        MessageFilter {
            account: Some(account),
            ..self.filter.clone()
        }
    }
}

/// A time in UTC.
fn time(text: &str) -> Option<Timestamp> {
    match text.len() {
        MINUTES_LEN => format!("{text}:00Z").parse().ok(),
        _ => format!("{text}Z").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(filters.problem, None);
        let filter = filters.of(account);
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
    fn what_cannot_be_read_is_said() {
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
    }
}
