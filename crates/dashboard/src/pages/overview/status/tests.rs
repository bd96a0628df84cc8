use domain::Network;

use super::*;

fn share<T>(of: T, delivered: u64) -> Share<T> {
    Share {
        of,
        totals: Totals {
            sent: delivered,
            delivered,
            ..Totals::default()
        },
    }
}

fn interval(until: Option<&str>) -> Interval {
    let time = |text: &str| text.parse().expect("a time");
    Interval {
        since: time("2026-01-31T00:00:00Z"),
        until: until.map(time),
    }
}

#[test]
fn a_period_has_a_first_and_a_last_day() {
    for (query, is_shown, is_refused) in [
        ("", false, false),
        ("from=2026-01-01&to=2026-01-31", true, false),
        ("from=2026-01-01&to=2026-01-01", true, false),
        ("from=2026-01-01&to=2026-02-01", false, true),
        ("from=2026-01-02&to=2026-01-01", false, true),
        ("from=2026-01-01", false, true),
        ("from=soon&to=2026-01-01", false, true),
    ] {
        let form = PeriodForm::read(&Query::new("/dashboard", query));
        let got = (form.days.is_some(), form.problem.is_some());
        assert_eq!(got, (is_shown, is_refused), "{query}");
    }
}

#[test]
fn the_change_of_the_delivery_rate_is_in_points() {
    let totals = |sent, delivered| Totals {
        sent,
        delivered,
        ..Totals::default()
    };
    for (before, now, expected) in [
        (totals(100, 90), totals(200, 190), Some("+5.0 points")),
        (
            totals(1000, 905),
            totals(1000, 880),
            Some("\u{2212}2.5 points"),
        ),
        (totals(10, 9), totals(100, 90), Some("\u{b1}0.0 points")),
        (totals(0, 0), totals(100, 90), None),
    ] {
        assert_eq!(change(before, now).as_deref(), expected, "{now:?}");
    }
}

#[test]
fn small_rows_are_summed_up() {
    let shares: Vec<_> = (0..12_u64)
        .map(|number| share(number, 20 - number))
        .collect();
    let items = rows(&shares, |number| (number.to_string(), None));
    assert_eq!(items.len(), MAX_ROWS);
    assert_eq!((items[0].name.as_str(), items[0].tally.all()), ("0", 20));
    let last = items.last().expect("a row");
    assert_eq!((last.name.as_str(), last.tally.all()), ("5 others", 55));
    let few = rows(&shares[..MAX_ROWS], |number| (number.to_string(), None));
    assert_eq!(few.last().map(|item| item.name.as_str()), Some("7"));
}

#[test]
fn operators_are_named_as_far_as_known() {
    let named = |country: Option<&str>, name: Option<&str>, network: Option<&str>| {
        operator(&OperatorName {
            country: country.map(|code| Country::parse(code).expect("a country")),
            name: name.map(Box::from),
            network: network.map(|code| code.parse::<Network>().expect("a network")),
        })
    };
    assert_eq!(named(Some("LV"), Some("Tele2"), None), "Tele2, LV");
    assert_eq!(named(None, None, Some("24799")), "24799");
    assert_eq!(named(None, None, None), "unknown");
}

#[test]
fn operators_lead_to_their_messages() {
    for (country, name, network, address) in [
        (
            Some("LV"),
            Some("A & B"),
            None,
            Some("/dashboard/messages?country=LV&operator=A+%26+B&since=2026-01-31T00%3A00"),
        ),
        (
            None,
            None,
            Some("24799"),
            Some("/dashboard/messages?network=24799&since=2026-01-31T00%3A00"),
        ),
        (Some("LV"), None, None, None),
        (None, None, None, None),
    ] {
        let operator = OperatorName {
            country: country.map(|code| Country::parse(code).expect("a country")),
            name: name.map(Box::from),
            network: network.map(|code| code.parse::<Network>().expect("a network")),
        };
        let own = operator_address(&operator, MessageList::Own, interval(None));
        assert_eq!(own.as_deref(), address);
    }
}

#[test]
fn operators_are_led_to_the_messages_of_the_accounts_that_they_see() {
    for (list, expected) in [
        (
            MessageList::Own,
            "/dashboard/messages?error=43&since=2026-01-31T00%3A00&until=2026-02-02T00%3A00",
        ),
        (
            MessageList::All(None),
            "/dashboard/operator/messages?error=43&since=2026-01-31T00%3A00&until=2026-02-02T00%3A00",
        ),
        (
            MessageList::All(Some("A & B")),
            "/dashboard/operator/messages?account=A+%26+B&error=43&since=2026-01-31T00%3A00&until=2026-02-02T00%3A00",
        ),
    ] {
        let days = interval(Some("2026-02-02T00:00:00Z"));
        assert_eq!(list.address(&[("error", "43")], days), expected);
    }
}
