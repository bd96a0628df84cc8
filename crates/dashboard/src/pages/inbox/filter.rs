//! The filter of lists of inbound messages.

use domain::inbound::number::InboundNumber;
use domain::ports::{InboundFilter, InboundOwner};

use crate::kit::query::{Query, parse_utc};

const FIELDS: [&str; 4] = ["from", "to", "since", "until"];

pub(crate) struct Filters {
    filter: InboundFilter,
    pub(crate) is_any: bool,
    /// The invalid fields and their problems.
    pub(crate) problems: Vec<(&'static str, &'static str)>,
}

impl Filters {
    pub(crate) fn read(query: &Query) -> Self {
        let mut problems = Vec::new();
        let to = query.get("to").map(InboundNumber::parse);
        if let Some(Err(_)) = to {
            problems.push((
                "to",
                "To: write a number with its country code, or a short code.",
            ));
        }
        let mut time = |name, problem| {
            let read = parse_utc(query.get(name)?);
            if read.is_none() {
                problems.push((name, problem));
            }
            read
        };
        let since = time("since", "Since: give a date and a time.");
        let until = time("until", "Until: give a date and a time.");
        Self {
            filter: InboundFilter {
                owner: InboundOwner::default(),
                from: query.get("from").map(shown_sender),
                to: to.and_then(Result::ok),
                since,
                until,
            },
            is_any: FIELDS.iter().any(|field| query.get(field).is_some()),
            problems,
        }
    }

    pub(crate) fn problem_of(&self, field: &str) -> Option<&str> {
        let mut problems = self.problems.iter();
        let (_, problem) = problems.find(|(wrong, _)| *wrong == field)?;
        Some(problem)
    }

    pub(crate) fn for_owner(&self, owner: InboundOwner) -> InboundFilter {
        InboundFilter {
            owner,
            ..self.filter.clone()
        }
    }
}

/// A sender as it is stored: a phone number has its plus sign.
pub(super) fn shown_sender(typed: &str) -> String {
    match InboundNumber::parse(typed) {
        Ok(number) => number.to_string(),
        Err(_) => typed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use domain::AccountId;

    use super::*;

    fn read(query: &str) -> Filters {
        Filters::read(&Query::new("/dashboard/inbox", query))
    }

    #[test]
    fn an_address_becomes_a_filter() {
        let owner = InboundOwner::Account(AccountId::new(7).expect("in range"));
        let filters =
            read("from=371+2000+0001&to=1234&since=2026-01-31T09:30&until=2026-02-01T00:00:30");
        assert!(filters.problems.is_empty());
        let filter = filters.for_owner(owner);
        assert_eq!(filter.owner, owner);
        assert_eq!(filter.from.as_deref(), Some("+37120000001"));
        assert_eq!(filter.to.map(|to| to.to_string()).as_deref(), Some("1234"));
        let times = [filter.since, filter.until].map(|at| at.map(|at| at.to_string()));
        let expected = ["2026-01-31T09:30:00Z", "2026-02-01T00:00:30Z"];
        assert_eq!(times, expected.map(|at| Some(at.to_owned())));
        assert!(!read("before=7").is_any, "a place in the list is no filter");
    }

    #[test]
    fn a_sender_may_be_a_number_a_short_code_or_a_name() {
        for (typed, shown) in [
            ("37120000001", "+37120000001"),
            ("12345678", "12345678"),
            ("Acme", "Acme"),
        ] {
            assert_eq!(shown_sender(typed), shown);
        }
    }

    #[test]
    fn invalid_fields_are_reported() {
        for (query, field) in [
            ("to=nobody", "to"),
            ("since=yesterday", "since"),
            ("until=2026-13-01T00:00", "until"),
        ] {
            let filters = read(query);
            assert!(filters.problem_of(field).is_some(), "{query}");
            assert!(filters.is_any, "{query}");
        }
        let filters = read("to=nobody&since=yesterday&until=soon");
        let wrong: Vec<&str> = filters.problems.iter().map(|(field, _)| *field).collect();
        assert_eq!(wrong, ["to", "since", "until"]);
    }
}
