use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("within range")
}

fn count(
    start: i64,
    network: Option<&str>,
    outcome: Option<Outcome>,
    messages: u64,
) -> TrafficCount {
    TrafficCount {
        start: at(start),
        channel: Channel::Sms,
        network: network.map(|code| code.parse().expect("a network")),
        country: None,
        outcome,
        messages,
        parts: 2 * messages,
        cost: Money::from_micros(10 * i64::try_from(messages).expect("small")),
    }
}

const DAY_S: i64 = 86_400;

/// The time is half past two.
fn overview_on_day_100(by_hour: &[TrafficCount], by_day: &[TrafficCount]) -> Overview {
    let now = at(100 * DAY_S + 2 * 3_600 + 1_800);
    let (hours, days) = (starts(now, HOUR, HOURS), starts(now, DAY, DAYS));
    overview(&hours, by_hour, &days, by_day, &Reference::embedded())
}

#[test]
fn a_series_has_every_span_up_to_the_current_one() {
    let last_hour = 100 * DAY_S + 2 * 3_600;
    let delivered = Some(Outcome::Delivered);
    let overview = overview_on_day_100(
        &[count(last_hour, None, delivered, 3)],
        &[count(100 * DAY_S, None, delivered, 5)],
    );
    let ends = |points: &[Point]| {
        (
            points.len(),
            points[0].start,
            points[points.len() - 1].start,
        )
    };
    assert_eq!(
        ends(&overview.hours),
        (48, at(last_hour - 47 * 3_600), at(last_hour))
    );
    assert_eq!(ends(&overview.days), (30, at(71 * DAY_S), at(100 * DAY_S)));
    assert_eq!(overview.hours[47].totals.sent, 3);
    assert_eq!(overview.hours[46].totals, Totals::default());
    assert_eq!(overview.days[29].totals.delivered, 5);
}

#[test]
fn totals_cover_their_whole_period() {
    let delivered = Some(Outcome::Delivered);
    let hour = 100 * DAY_S + 2 * 3_600;
    let by_hour = [
        count(hour - 24 * 3_600, None, delivered, 1),
        count(hour - 23 * 3_600, None, delivered, 2),
        count(hour, None, delivered, 4),
    ];
    let by_day = [
        count(71 * DAY_S, None, delivered, 1),
        count(93 * DAY_S, None, delivered, 2),
        count(94 * DAY_S, None, delivered, 4),
        count(100 * DAY_S, None, delivered, 8),
    ];
    let overview = overview_on_day_100(&by_hour, &by_day);
    assert_eq!(overview.last_24_hours.sent, 6);
    assert_eq!(overview.today.sent, 8);
    assert_eq!(overview.last_7_days.sent, 12);
    assert_eq!(overview.last_30_days.sent, 15);
    assert_eq!(overview.last_30_days.parts, 30);
    assert_eq!(overview.last_30_days.cost, Money::from_micros(150));
}

#[test]
fn outcomes_are_counted_separately_and_cancelled_messages_are_not_sent() {
    let day = 100 * DAY_S;
    let failed = Some(Outcome::Failed(Code::ABSENT));
    let overview = overview_on_day_100(
        &[],
        &[
            count(day, None, Some(Outcome::Delivered), 7),
            count(day, None, failed, 2),
            count(day, Some("24701"), failed, 1),
            count(day, None, Some(Outcome::Expired), 1),
            count(day, None, None, 5),
        ],
    );
    let today = overview.today;
    assert_eq!((today.sent, today.delivered, today.failed), (11, 7, 3));
    assert_eq!((today.expired, today.cancelled), (1, 5));
    let errors: Vec<_> = overview
        .errors
        .iter()
        .map(|one| (one.of, one.totals.sent))
        .collect();
    assert_eq!(errors, [(Code::ABSENT, 3), (Code::EXPIRED, 1)]);
    assert_eq!(overview.channels.len(), 1);
    assert_eq!(overview.channels[0].totals.sent, 11);
}

#[test]
fn the_reference_data_names_the_operators_of_networks() {
    let delivered = Some(Outcome::Delivered);
    let overview = overview_on_day_100(
        &[],
        &[
            count(100 * DAY_S, Some("24701"), delivered, 3),
            count(99 * DAY_S, Some("24701"), delivered, 3),
            count(99 * DAY_S, Some("99999"), delivered, 2),
            count(99 * DAY_S, None, delivered, 1),
            TrafficCount {
                country: Country::parse("LV").ok(),
                ..count(99 * DAY_S, None, delivered, 4)
            },
        ],
    );
    let latvia = Country::parse("LV").expect("a country");
    let countries: Vec<_> = overview
        .countries
        .iter()
        .map(|one| (one.of, one.totals.sent))
        .collect();
    assert_eq!(countries, [(Some(latvia), 10), (None, 3)]);
    let [known, located, unlisted, unknown] = &overview.operators[..] else {
        panic!("{:?}", overview.operators)
    };
    assert!(known.of.name.is_some() && known.of.network.is_none());
    assert_eq!(known.totals.sent, 6);
    assert_eq!(
        (located.of.name.as_deref(), located.of.country),
        (None, Some(latvia))
    );
    assert_eq!(
        (unlisted.of.name.as_deref(), unlisted.of.network.is_some()),
        (None, true)
    );
    assert_eq!(
        (unknown.of.name.as_deref(), unknown.of.network),
        (None, None)
    );
}

#[test]
fn a_period_is_compared_with_as_many_days_before_it() {
    let delivered = Some(Outcome::Delivered);
    let days = starts(at(100 * DAY_S), DAY, 2);
    let counts = [
        count(97 * DAY_S, None, delivered, 1),
        count(98 * DAY_S, None, Some(Outcome::Expired), 2),
        count(99 * DAY_S, None, delivered, 4),
        count(100 * DAY_S, None, None, 8),
    ];
    let period = period(&days, &counts, &Reference::embedded());
    assert_eq!((period.totals.sent, period.totals.cancelled), (4, 8));
    assert_eq!((period.before.sent, period.before.expired), (3, 2));
    let sent: Vec<u64> = period.days.iter().map(|day| day.totals.sent).collect();
    assert_eq!(sent, [4, 0]);
    assert_eq!(period.errors, [], "only of the period itself");
}

#[test]
fn a_clear_fall_of_the_delivery_rate_is_found() {
    let absent = Outcome::Failed(Code::ABSENT);
    let fall = |before: (u64, u64), now: (u64, u64)| {
        let mut counts = Vec::new();
        for (day, (delivered, failed)) in [(95, before), (100, now)] {
            counts.push(count(
                day * DAY_S,
                None,
                Some(Outcome::Delivered),
                delivered,
            ));
            counts.push(count(day * DAY_S, None, Some(absent), failed));
        }
        FallingRate::find(&overview_on_day_100(&[], &counts).days, false)
    };
    for (before, now, is_falling) in [
        ((95, 5), (80, 20), true),
        ((95, 5), (90, 10), false),
        ((80, 20), (95, 5), false),
        ((95, 5), (0, 49), false),
        ((40, 0), (0, 100), false),
        ((0, 0), (0, 0), false),
    ] {
        let found = fall(before, now);
        assert_eq!(found.is_some(), is_falling, "{before:?} {now:?}");
    }
    let found = fall((95, 5), (80, 20)).expect("it fell");
    assert_eq!((found.now.sent, found.before.delivered), (100, 95));
}
