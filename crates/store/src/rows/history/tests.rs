use domain::Timestamp;
use proptest::prelude::*;

use super::*;

const SECOND: i64 = 1_000_000;

/// Rows by ascending ID, each accepted within the allowed disorder.
fn rows() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let row = (1_i64..5_000, 0..3_600 * SECOND, 0..3_600 * SECOND);
    prop::collection::vec(row, 1..200).prop_map(|steps| {
        let (mut id, mut time_us) = (0, 1_800_000_000 * SECOND);
        let mut rows = Vec::new();
        for (gap, step_us, late_us) in steps {
            id += gap;
            time_us += step_us;
            rows.push((id, time_us + late_us));
        }
        rows
    })
}

fn search(rows: &[(i64, i64)], mut search: TimeSearch, probes: i64) -> TimeSearch {
    loop {
        let asked = search.probes(probes);
        if asked.is_empty() {
            return search;
        }
        for probe in asked {
            let found = rows.iter().find(|(id, _)| *id >= probe);
            search.narrow(probe, found.copied());
        }
    }
}

fn matching(since_us: Option<i64>, until_us: Option<i64>) -> MatchColumns {
    let time = |micros: i64| Timestamp::from_microsecond(micros).expect("within range");
    MatchColumns::from_filter(&MessageFilter {
        since: since_us.map(time),
        until: until_us.map(time),
        ..MessageFilter::default()
    })
}

proptest! {
    #[test]
    fn a_search_by_time_misses_no_message(
        rows in rows(),
        index in any::<prop::sample::Index>(),
        probes in prop::sample::select(vec![1_i64, 31]),
    ) {
        let (_, time_us) = rows[index.index(rows.len())];
        let (first, last) = (rows[0].0, rows[rows.len() - 1].0);
        let asked = matching(Some(time_us), Some(time_us));
        let since = TimeSearch::for_since(&asked, first, last).expect("it is given");
        let since = search(&rows, since, probes);
        let until = TimeSearch::for_until(&asked, first, last).expect("it is given");
        let until = search(&rows, until, probes);
        for (id, accepted_us) in &rows {
            prop_assert!(*accepted_us < time_us || *id > since.low, "{id} is not since");
            prop_assert!(*accepted_us >= time_us || *id < until.high, "{id} is not until");
        }
    }
}

#[test]
fn a_search_by_time_skips_rows_far_from_that_time() {
    const DAY: i64 = 86_400 * SECOND;
    let rows: Vec<(i64, i64)> = (1..=1_000).map(|day| (day * 10, day * DAY)).collect();
    let asked = matching(Some(400 * DAY), Some(500 * DAY));
    for probes in [1, 31] {
        let since = TimeSearch::for_since(&asked, 10, 10_000).expect("it is given");
        assert_eq!(search(&rows, since, probes).low, 3_990);
        let until = TimeSearch::for_until(&asked, 10, 10_000).expect("it is given");
        let high = search(&rows, until, probes).high;
        assert!((5_001..=5_010).contains(&high), "{high}");
    }
}

#[test]
fn a_filter_without_times_needs_no_search() {
    let all = matching(None, None);
    assert_eq!(TimeSearch::for_since(&all, 1, 9), None);
    assert_eq!(TimeSearch::for_until(&all, 1, 9), None);
}

#[test]
fn an_originator_is_compared_as_it_is_stored() {
    for (asked, stored) in [
        ("Acme", "Acme"),
        ("37120000009", "+37120000009"),
        ("+37120000009", "+37120000009"),
        ("no sender \u{7}", "no sender \u{7}"),
    ] {
        assert_eq!(shown_originator(asked), stored);
    }
}
