use super::*;
use crate::catalogue::prices::Format;
use crate::sending::carriers::Route;
use domain::{Country, Network};
use numbering::reference::Reference;

const ACME: AccountId = AccountId::new(1).expect("in range");
const OTHER: AccountId = AccountId::new(2).expect("in range");

fn carrier(channels: &[Channel]) -> CarrierFacts {
    CarrierFacts {
        name: String::new(),
        channels: channels.to_vec(),
        costs: None,
        is_simulated: false,
    }
}

fn rule(when: Condition, carriers: &[usize]) -> Rule {
    Rule {
        when,
        carriers: carriers.to_vec(),
        choice: Choice::Order,
        ported_numbers: false,
    }
}

impl RoutingTable {
    fn route(
        &self,
        channel: Channel,
        account: AccountId,
        to: &Msisdn,
        location: &Location,
        id: u64,
    ) -> Option<Route> {
        let locations = Locations {
            home: *location,
            ported: *location,
            by_account: false,
        };
        let chosen = self.choose(channel, account, to, &locations);
        chosen.map(|(choice, _)| choice.pick(id))
    }
}

fn table(plan: &Plan) -> RoutingTable {
    let acme = "acme".parse().expect("a name");
    RoutingTable::new(plan, &HashMap::from([(acme, ACME)]), Arc::default())
}

fn latvia() -> Location {
    Location {
        country: Country::parse("LV").ok(),
        network: Network::new("247", "01"),
        ..Location::default()
    }
}

fn to(number: &str) -> Msisdn {
    Msisdn::parse(number).expect("a number")
}

/// The first two carry SMS, the third one everything.
fn carriers() -> Vec<CarrierFacts> {
    vec![
        carrier(&[Channel::Sms]),
        carrier(&[Channel::Sms]),
        carrier(&Channel::ALL),
    ]
}

#[test]
fn without_rules_messages_may_use_every_carrier_of_their_channel() {
    let table = table(&Plan {
        carriers: carriers(),
        rules: Vec::new(),
    });
    let route = |channel| table.route(channel, ACME, &to("+37120000001"), &latvia(), 0);
    assert_eq!(route(Channel::Sms).as_deref(), Some(&[0, 1, 2][..]));
    assert_eq!(route(Channel::Viber).as_deref(), Some(&[2][..]));
    assert_eq!(route(Channel::Hlr).as_deref(), Some(&[2][..]));
}

#[test]
fn without_carriers_there_is_no_route() {
    let table = table(&Plan::default());
    let route = table.route(Channel::Sms, ACME, &to("+37120000001"), &latvia(), 0);
    assert_eq!(route, None);
}

/// Conditions, and whether each of the four messages of the test meets them.
fn conditions() -> [(&'static str, Condition, [bool; 4]); 8] {
    let any = Condition::default;
    let account = |name: &str| Condition {
        accounts: vec![name.parse().expect("a name")],
        ..any()
    };
    let channels = vec![Channel::Sms];
    let channel = Condition { channels, ..any() };
    let countries = vec![Country::parse("LV").expect("a country")];
    let country = Condition { countries, ..any() };
    let prefixes = vec!["370".into(), "371".into()];
    let prefix = Condition { prefixes, ..any() };
    let networks = vec![Network::new("247", "01").expect("a network")];
    let network = Condition { networks, ..any() };
    let two = Condition {
        channels: vec![Channel::Sms],
        prefixes: vec!["371".into()],
        ..any()
    };
    [
        ("channel", channel, [true, false, true, true]),
        ("account", account("acme"), [true, true, false, true]),
        (
            "an account that does not exist",
            account("nobody"),
            [false; 4],
        ),
        ("country", country, [true, true, true, false]),
        ("prefix", prefix, [true, true, true, false]),
        ("network", network, [true, true, true, false]),
        ("two of them", two, [true, false, true, false]),
        ("nothing", any(), [true; 4]),
    ]
}

#[test]
fn every_condition_of_a_rule_must_hold() {
    let messages = [
        (Channel::Sms, ACME, "+37120000001", latvia()),
        (Channel::Viber, ACME, "+37120000001", latvia()),
        (Channel::Sms, OTHER, "+37120000001", latvia()),
        (Channel::Sms, ACME, "+4915100000000", Location::default()),
    ];
    for (name, when, expected) in conditions() {
        let table = table(&Plan {
            carriers: carriers(),
            rules: vec![rule(when, &[2])],
        });
        let found = messages
            .each_ref()
            .map(|(channel, account, number, location)| {
                table
                    .route(*channel, *account, &to(number), location, 0)
                    .is_some()
            });
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_first_matching_rule_decides() {
    let prefix = |prefix: &str| Condition {
        prefixes: vec![prefix.to_owned()],
        ..Condition::default()
    };
    let table = table(&Plan {
        carriers: carriers(),
        rules: vec![
            rule(prefix("3712"), &[1, 0]),
            rule(prefix("371"), &[0]),
            rule(Condition::default(), &[2]),
        ],
    });
    for (channel, number, expected) in [
        (Channel::Sms, "+37120000001", &[1, 0][..]),
        (Channel::Sms, "+37160000001", &[0]),
        (Channel::Sms, "+4915100000000", &[2]),
        // The first two rules have no carrier for Viber.
        (Channel::Viber, "+37120000001", &[2]),
    ] {
        let route = table.route(channel, ACME, &to(number), &latvia(), 0);
        assert_eq!(route.as_deref(), Some(expected), "{number}");
    }
}

#[test]
fn shares_follow_the_weights() {
    let mut shared = rule(Condition::default(), &[0, 1, 2]);
    shared.choice = Choice::Share(vec![3, 1, 0]);
    let table = table(&Plan {
        carriers: carriers(),
        rules: vec![shared],
    });
    // IDs are consecutive, or every second or fourth one if other messages come between.
    for step in [1, 2, 4, 1000] {
        let mut firsts = [0; 3];
        for id in (0..4000).map(|number| number * step) {
            let route = table
                .route(Channel::Sms, ACME, &to("+37120000001"), &latvia(), id)
                .expect("a route");
            firsts[usize::from(route[0])] += 1;
            let mut all = route.to_vec();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2], "the others follow");
        }
        let [most, some, none] = firsts;
        assert!((2890..=3110).contains(&most), "{step}: {firsts:?}");
        assert_eq!((most + some, none), (4000, 0), "{step}");
    }
}

#[test]
fn the_cheapest_comes_first_and_the_unknown_last() {
    let costs = |rate: &str| {
        let csv = format!(
            "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,247,,{rate}\n"
        );
        let list = PriceList::read(&csv, Format::Csv, &Reference::embedded()).expect("valid");
        Some(Arc::new(list))
    };
    let mut carriers = carriers();
    carriers[1].costs = costs("0.02");
    carriers[2].costs = costs("0.01");
    let mut cheapest = rule(Condition::default(), &[0, 1, 2]);
    cheapest.choice = Choice::Cost;
    let table = table(&Plan {
        carriers,
        rules: vec![cheapest],
    });
    let route = |location| table.route(Channel::Sms, ACME, &to("+37120000001"), &location, 0);
    // The second time, the orders are remembered.
    for _ in 0..2 {
        assert_eq!(route(latvia()).as_deref(), Some(&[2, 1, 0][..]));
        let unknown = route(Location::default());
        assert_eq!(
            unknown.as_deref(),
            Some(&[0, 1, 2][..]),
            "in the rule's order"
        );
    }
}

#[test]
fn a_rule_or_an_account_may_go_by_the_network_that_a_number_was_ported_to() {
    let when = |network: &str| Condition {
        networks: vec![network.parse().expect("a network")],
        ..Condition::default()
    };
    let ported = Location {
        network: Network::new("247", "02"),
        ..latvia()
    };
    // Whether the rule says so, whether the account says so, and the first carrier and network that decide.
    for (by_rule, by_account, carrier, network) in [
        (false, false, 0, "24701"),
        (true, false, 1, "24702"),
        (false, true, 1, "24702"),
        (true, true, 1, "24702"),
    ] {
        let mut rules = [rule(when("24702"), &[1]), rule(when("24701"), &[0])];
        rules[0].ported_numbers = by_rule;
        let table = table(&Plan {
            carriers: carriers(),
            rules: rules.to_vec(),
        });
        assert_eq!(table.uses_ported, by_rule);
        let locations = Locations {
            home: latvia(),
            ported,
            by_account,
        };
        let chosen = table.choose(Channel::Sms, ACME, &to("+37120000001"), &locations);
        let (choice, location) = chosen.expect("a route");
        let found = location.network.map(|network| network.to_string());
        let case = (by_rule, by_account);
        assert_eq!(choice.pick(0).as_ref(), [carrier], "{case:?}");
        assert_eq!(found.as_deref(), Some(network), "{case:?}");
    }
}
