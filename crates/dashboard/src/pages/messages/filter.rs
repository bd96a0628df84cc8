//! The filter of the list of messages.

use domain::message::code::Code;
use domain::ports::{MessageFilter, Place, StateName};
use domain::{AccountId, Country, MessageId, Msisdn};
use engine::reading::traffic::{country_places, operator_places};
use numbering::reference::Reference;

use crate::kit::query::{Query, parse_utc};

const FIELDS: [&str; 12] = [
    "account", "to", "id", "from", "state", "channel", "error", "since", "until", "country",
    "operator", "network",
];

pub(super) struct Filters {
    filter: MessageFilter,
    pub(super) id: Option<MessageId>,
    pub(super) is_any: bool,
    /// The invalid fields and their problems.
    pub(super) problems: Vec<(&'static str, String)>,
}

impl Filters {
    /// `reference` tells the networks of a country.
    pub(super) fn read(query: &Query, reference: &Reference) -> Self {
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
            places: read.places(query, reference),
        };
        Self { filter, ..read }
    }

    /// The places of a country, an operator or a network.
    fn places(&mut self, query: &Query, reference: &Reference) -> Option<Vec<Place>> {
        let rule = "Write the country with two letters, such as LV.";
        let country = self.field(query, "country", rule, |code| Country::parse(code).ok());
        let rule = "Give the country and the name of an operator as the overview shows them.";
        let of_operator = self.field(query, "operator", rule, |name| {
            operator_places(reference, country?, name)
        });
        let rule = "Write a network as MCC and MNC, such as 24701.";
        let network = self.field(query, "network", rule, |code| code.parse().ok());
        let places = of_operator.or_else(|| Some(country_places(reference, country?)));
        match network.map(Place::Network) {
            None => places,
            Some(network) => {
                let is_inside = places.is_none_or(|places| places.contains(&network));
                Some(is_inside.then_some(network).into_iter().collect())
            }
        }
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
    use std::sync::LazyLock;

    use domain::Timestamp;

    use super::*;

    static REFERENCE: LazyLock<Reference> = LazyLock::new(Reference::embedded);

    fn read(query: &str) -> Filters {
        Filters::read(&Query::new("/dashboard/messages", query), &REFERENCE)
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
    fn messages_are_found_by_country_operator_or_network() {
        let latvia = Country::parse("LV").expect("a country");
        let network = Place::Network("24701".parse().expect("a network"));
        let places = |query: &str| read(query).of(None).places;
        assert_eq!(places("state=failed"), None);
        assert_eq!(places("network=24701"), Some(vec![network]));
        assert_eq!(places("network=24701&country=lv"), Some(vec![network]));
        assert_eq!(places("network=24701&country=DE"), Some(vec![]), "none");
        let country = places("country=LV").expect("given");
        assert!(country.contains(&network) && country.contains(&Place::Country(latvia)));
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
            ("country=XX", "country"),
            ("operator=LMT", "operator"),
            ("country=LV&operator=Nobody", "operator"),
            ("network=LV", "network"),
        ] {
            let filters = read(query);
            assert!(filters.problem_of(field).is_some(), "{query}");
            assert!(filters.is_any, "{query}");
        }
        let all = read("to=nobody&id=12x&since=yesterday");
        assert_eq!(all.problems.len(), 3, "all at once");
    }
}
