use super::*;
use crate::catalogue::prices::Format;
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
    }
}

fn table(plan: &Plan) -> Table {
    let acme = "acme".parse().expect("a name");
    Table::new(plan, &HashMap::from([(acme, ACME)]), Arc::default())
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

/// Alpha and beta carry SMS, gamma everything.
fn carriers() -> Vec<CarrierFacts> {
    vec![
        carrier(&[Channel::Sms]),
        carrier(&[Channel::Sms]),
        carrier(&Channel::ALL),
    ]
}

#[test]
fn without_rules_everything_goes_by_every_carrier_that_serves_it() {
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

#[test]
fn every_condition_of_a_rule_must_hold() {
    let conditions = [
        (
            "channel",
            Condition {
                channels: vec![Channel::Sms],
                ..Condition::default()
            },
            [true, false, true, true],
        ),
        (
            "account",
            Condition {
                accounts: vec!["acme".parse().expect("a name")],
                ..Condition::default()
            },
            [true, true, false, true],
        ),
        (
            "an account that is not there",
            Condition {
                accounts: vec!["nobody".parse().expect("a name")],
                ..Condition::default()
            },
            [false; 4],
        ),
        (
            "country",
            Condition {
                countries: vec![Country::parse("LV").expect("a country")],
                ..Condition::default()
            },
            [true, true, true, false],
        ),
        (
            "prefix",
            Condition {
                prefixes: vec!["370".into(), "371".into()],
                ..Condition::default()
            },
            [true, true, true, false],
        ),
        (
            "network",
            Condition {
                networks: vec![Network::new("247", "01").expect("a network")],
                ..Condition::default()
            },
            [true, true, true, false],
        ),
        (
            "two of them",
            Condition {
                channels: vec![Channel::Sms],
                prefixes: vec!["371".into()],
                ..Condition::default()
            },
            [true, false, true, false],
        ),
        ("nothing", Condition::default(), [true; 4]),
    ];
    let messages = [
        (Channel::Sms, ACME, "+37120000001", latvia()),
        (Channel::Viber, ACME, "+37120000001", latvia()),
        (Channel::Sms, OTHER, "+37120000001", latvia()),
        (Channel::Sms, ACME, "+4915100000000", Location::default()),
    ];
    for (name, when, expected) in conditions {
        let table = table(&Plan {
            carriers: carriers(),
            rules: vec![rule(when, &[2])],
        });
        let found = messages
            .each_ref()
            .map(|(channel, account, number, place)| {
                table
                    .route(*channel, *account, &to(number), place, 0)
                    .is_some()
            });
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_first_rule_that_fits_decides() {
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
        // The first two rules have no carrier for it.
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
    // IDs follow each other, or other messages take every second or fourth of them.
    for step in [1, 2, 4, 1000] {
        let mut firsts = [0; 3];
        for dice in (0..4000).map(|number| number * step) {
            let route = table
                .route(Channel::Sms, ACME, &to("+37120000001"), &latvia(), dice)
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
    let route = |place| table.route(Channel::Sms, ACME, &to("+37120000001"), &place, 0);
    assert_eq!(route(latvia()).as_deref(), Some(&[2, 1, 0][..]));
    let unknown = route(Location::default());
    assert_eq!(unknown.as_deref(), Some(&[0, 1, 2][..]), "as they stand");
}
