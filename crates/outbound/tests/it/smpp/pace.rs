//! The rate of messages, and the effect of throttling.

use std::time::Duration;

use domain::Code;
use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health};
use outbound::SmppSettings;
use testkit::StallMonitor;
use testkit::smsc::{Action, Smsc};
use tokio::task::JoinSet;

use super::setup::{
    connected, queued, settings, submit, submit_all_until_taken, submit_until_taken,
};

#[tokio::test]
async fn the_limit_holds_over_all_links_and_parts() {
    let monitor = StallMonitor::start();
    let smsc = Smsc::start();
    let limited = SmppSettings {
        binds: 2,
        max_per_second: Some(100),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(limited).await;
    let long = "a".repeat(161);
    let mut tasks = JoinSet::new();
    for id in 1..=100 {
        let (carrier, long) = (carrier.clone(), long.clone());
        tasks.spawn(async move { submit(&carrier, &queued(id, &long)).await });
    }
    for answer in tasks.join_all().await {
        assert!(matches!(answer, CarrierAnswer::Taken(_)), "{answer:?}");
    }
    let submits = smsc.log().submits;
    assert_eq!(submits.len(), 200);
    let took = submits[199].at - submits[0].at;
    assert!(took >= Duration::from_millis(1_850), "{took:?}");
    // By the SMSC's clock, with some tolerance: parts that were sent while the SMSC was not scheduled arrive together.
    for (index, first) in submits.iter().enumerate() {
        let second = Duration::from_secs(1);
        let within = submits[index..]
            .iter()
            .filter(|submit| submit.at - first.at < second);
        let before = first.at.checked_sub(second).unwrap_or(first.at);
        let stalled = monitor.stalled(before, first.at + second).as_millis();
        let (count, most) = (within.count() as u128, 150 + stalled / 10);
        assert!(
            count <= most,
            "{count} in a second; stalled for {stalled} ms"
        );
    }
}

#[tokio::test]
async fn a_throttled_message_goes_back_and_the_carrier_is_strained_for_a_while() {
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            0 => vec![Action::Refuse(0x58)],
            _ => vec![Action::Answer],
        })
        .start();
    let limited = SmppSettings {
        max_per_second: Some(1_000),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(limited).await;
    let answer = submit(&carrier, &queued(1, "Hi")).await;
    assert_eq!(answer, CarrierAnswer::NotNow(Code::THROTTLED));
    assert_eq!(carrier.health(), Health::Strained);
    let note = carrier.state().note.unwrap_or_default();
    assert!(note.contains("asks for less"), "{note}");
    let refused_at = smsc.log().submits[0].at;
    submit_until_taken(&carrier, &queued(1, "Hi")).await;
    let pause = smsc.log().submits[1].at - refused_at;
    assert!(pause >= Duration::from_millis(250), "{pause:?}");
}

#[tokio::test]
async fn heavy_throttling_slows_everything_and_loses_nothing() {
    let smsc = Smsc::builder()
        .on_submit(|submit| {
            // Late enough for many messages to be in flight.
            let late = Action::Wait(Duration::from_millis(50));
            match submit.number {
                // Eight of ten, like a carrier whose customer sends too fast.
                20..60 if submit.number % 5 != 0 => vec![late, Action::Refuse(0x58)],
                _ => vec![late, Action::Answer],
            }
        })
        .start();
    let limited = SmppSettings {
        max_per_second: Some(500),
        window: 20,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(limited).await;
    submit_all_until_taken(&carrier, 1..=100).await;
    let log = smsc.log();
    assert_eq!(
        log.submit_count, 132,
        "a refused message is sent again, and no other"
    );
    let pauses = log
        .submits
        .windows(2)
        .filter(|pair| pair[1].at - pair[0].at >= Duration::from_millis(200))
        .count();
    assert!(pauses >= 2, "it paused {pauses} times");
}
