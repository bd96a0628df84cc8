use proptest::prelude::*;

use super::schedule::FIRST_PAUSE;
use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_parts_do_not_wait() {
    let pace = Pace::new(None);
    let start = Instant::now();
    for _ in 0..10_000 {
        pace.turn().await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_limit_holds_over_every_second() {
    let pace = Pace::new(Some(100));
    let start = Instant::now();
    let mut at = Vec::new();
    for _ in 0..500 {
        pace.turn().await;
        at.push(start.elapsed());
    }
    // tokio's timer rounds up to a millisecond.
    assert!(at[499] >= ms(4_900) && at[499] < ms(5_100), "{:?}", at[499]);
    for (index, from) in at.iter().enumerate() {
        let within = at[index..].iter().filter(|time| **time < *from + ms(1_000));
        assert!(within.count() <= 106, "from {from:?}");
    }
}

/// However many parts are handed over when ready, few wait for their turn.
#[tokio::test(start_paused = true)]
async fn few_parts_are_handed_over_ahead_of_their_turn() {
    let pace = std::sync::Arc::new(Pace::new(Some(50)));
    let start = Instant::now();
    let (mut sending, mut most) = (tokio::task::JoinSet::new(), 0);
    for number in 0..500 {
        pace.ready(u32::from(number > 0)).await;
        let pace_of_part = pace.clone();
        sending.spawn(async move { pace_of_part.turn().await.turn });
        most = most.max(pace.waiting.load(Ordering::Relaxed));
    }
    sending.join_all().await;
    let took = start.elapsed();
    assert!(
        took > ms(9_000) && took < ms(10_500),
        "at the full rate: {took:?}"
    );
    assert!((10..=30).contains(&most), "{most} at 50 a second");
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_it_is_always_ready() {
    let pace = Pace::new(None);
    let start = Instant::now();
    for _ in 0..1_000 {
        pace.ready(255).await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_share_of_the_links_is_a_share_of_the_rate() {
    let pace = Pace::new(Some(100));
    for (share, least, most) in [(0.25, 3_900, 4_100), (1.0, 900, 1_100), (0.5, 1_900, 2_100)] {
        pace.set_share(share);
        let start = Instant::now();
        for _ in 0..100 {
            pace.turn().await;
        }
        let took = start.elapsed();
        assert!(took > ms(least) && took < ms(most), "{share}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_burst_of_throttling_halves_the_rate_once_and_it_recovers() {
    let pace = Pace::new(Some(100));
    let mut storm = Vec::new();
    for _ in 0..50 {
        storm.push(pace.turn().await.turn);
    }
    let at = Instant::now();
    for turn in storm {
        pace.throttled(turn);
    }
    assert!(pace.is_slow());
    pace.turn().await;
    assert!(at.elapsed() >= FIRST_PAUSE, "{:?}", at.elapsed());
    let from = Instant::now();
    for _ in 0..50 {
        pace.turn().await;
    }
    let took = from.elapsed();
    assert!(
        took > ms(900) && took < ms(1_050),
        "at half the rate: {took:?}"
    );
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!pace.is_slow());
}

#[tokio::test(start_paused = true)]
async fn a_part_that_waits_during_a_cut_gets_a_new_turn() {
    let pace = std::sync::Arc::new(Pace::new(Some(10)));
    let first = pace.turn().await.turn;
    let waiting = tokio::spawn({
        let pace = pace.clone();
        async move { pace.turn().await.turn }
    });
    tokio::task::yield_now().await;
    let cut = Instant::now();
    pace.throttled(first);
    waiting.await.expect("ends");
    assert!(cut.elapsed() >= FIRST_PAUSE, "{:?}", cut.elapsed());
}

#[tokio::test(start_paused = true)]
async fn waiting_parts_benefit_when_the_rate_recovers() {
    let pace = std::sync::Arc::new(Pace::new(Some(100)));
    for _ in 0..8 {
        let turn = pace.turn().await.turn;
        pace.throttled(turn);
    }
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let pace = pace.clone();
        waiting.spawn(async move { pace.turn().await.turn });
    }
    let from = Instant::now();
    waiting.join_all().await;
    let took = from.elapsed();
    // From one a second, growing by five every second.
    assert!(took > ms(8_000) && took < ms(12_000), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_the_measured_rate_is_halved() {
    let pace = Pace::new(None);
    let mut last = pace.turn().await.turn;
    for _ in 0..199 {
        tokio::time::advance(ms(5)).await;
        last = pace.turn().await.turn;
    }
    pace.throttled(last);
    pace.turn().await;
    let from = Instant::now();
    for _ in 0..100 {
        pace.turn().await;
    }
    let took = from.elapsed();
    assert!(took > ms(900) && took < ms(1_100), "100 a second: {took:?}");
    tokio::time::advance(Duration::from_secs(20)).await;
    let from = Instant::now();
    for _ in 0..1_000 {
        pace.turn().await;
    }
    assert_eq!(from.elapsed(), Duration::ZERO, "unlimited again");
}

proptest! {
    #[test]
    fn turns_are_always_in_order_and_bounded(
        limit in prop::option::of(1_u32..5_000),
        steps in prop::collection::vec((0_u64..3_000, any::<bool>()), 1..200),
    ) {
        let start = Instant::now();
        let mut schedule = Schedule::new(limit.map(f64::from), start);
        let (mut now, mut last) = (start, start);
        for (passed, is_throttled) in steps {
            now += ms(passed);
            let turn = schedule.next(now);
            prop_assert!(turn.at >= now && turn.at >= last);
            // The lowest rate allows one a second, and at most the turns of this test are waiting.
            prop_assert!(turn.at <= now + Duration::from_secs(201));
            last = turn.at;
            if is_throttled {
                let until = schedule.cut(turn, now).expect("the first since the last cut");
                prop_assert!(until > now && until < now + Duration::from_secs(30));
                prop_assert_eq!(schedule.cut(turn, now), None, "once");
                last = now;
            }
        }
    }
}
