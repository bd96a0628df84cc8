//! A carrier has exactly the links that it may have, and closes the others gracefully.

use std::time::Duration;

use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health};
use outbound::SmppSettings;
use outbound::smpp::BindMode;
use testkit::smsc::{Act, Smsc};

use super::setup::{Sink, eventually, queued, settings, start, submit, until_up};

fn four(smsc: &Smsc) -> SmppSettings {
    SmppSettings {
        binds: 4,
        ..settings(smsc)
    }
}

#[tokio::test]
async fn links_come_and_go_with_what_is_allowed() {
    let smsc = Smsc::start();
    let carrier = start(four(&smsc), &Sink::new());
    carrier.allow_binds(0);
    eventually("it has none", || carrier.open_binds() == 0).await;
    let before = smsc.seen();
    for allowed in [2_u16, 3, 1, 4, 0, 1, 9] {
        carrier.allow_binds(allowed);
        let expected = allowed.min(4);
        eventually("it has as many as it may", || {
            smsc.bound().len() == usize::from(expected) && carrier.open_binds() == expected
        })
        .await;
        eventually("it says so", || {
            let state = carrier.state();
            (state.links_up, state.links, state.links_total) == (expected, expected, 4)
        })
        .await;
        let health = if expected == 0 {
            Health::Down
        } else {
            Health::Up
        };
        assert_eq!(carrier.health(), health, "{allowed}");
    }
    let seen = smsc.seen();
    assert_eq!(
        seen.unbinds - before.unbinds,
        6,
        "each was unbound, not cut off"
    );
    assert_eq!(seen.most_bound, 4);
    carrier.stop().await;
    assert!(smsc.bound().is_empty());
}

#[tokio::test]
async fn a_pair_is_one_bind() {
    let smsc = Smsc::start();
    let pairs = SmppSettings {
        bind: BindMode::Pair,
        ..four(&smsc)
    };
    let carrier = start(pairs, &Sink::new());
    for allowed in [4_u16, 1, 2] {
        carrier.allow_binds(allowed);
        eventually("it has both of each", || {
            smsc.bound().len() == usize::from(2 * allowed) && carrier.open_binds() == allowed
        })
        .await;
    }
    assert_eq!((carrier.state().links, carrier.state().links_total), (4, 8));
}

/// Includes the second part of a message whose first part was accepted.
#[tokio::test]
async fn messages_in_flight_are_answered_before_the_last_link_closes() {
    let smsc = Smsc::builder()
        .on_submit(|_| vec![Act::Wait(Duration::from_millis(300)), Act::Answer])
        .start();
    // So slow that the second part is not sent yet when the link has to close.
    let slow = SmppSettings {
        max_per_second: Some(4),
        ..four(&smsc)
    };
    let carrier = start(slow, &Sink::new());
    carrier.allow_binds(1);
    until_up(&carrier).await;
    let under_way = tokio::spawn({
        let carrier = carrier.clone();
        async move { submit(&carrier, &queued(1, &"a".repeat(200))).await }
    });
    eventually("the first part is there", || smsc.seen().taken == 1).await;
    carrier.allow_binds(0);
    eventually("it is down", || carrier.health() == Health::Down).await;
    let late = submit(&carrier, &queued(2, "late")).await;
    assert!(matches!(late, CarrierAnswer::NotNow(_)), "{late:?}");
    assert_eq!(carrier.open_binds(), 1, "still open");
    let answer = under_way.await.expect("no panic");
    let CarrierAnswer::Taken(parts) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(parts.len(), 2);
    eventually("it is closed", || carrier.open_binds() == 0).await;
    let seen = smsc.seen();
    assert_eq!((seen.taken, seen.unbinds), (2, 1));
}

/// The SMSC never answers, and the link closes anyway.
#[tokio::test]
async fn a_closing_link_does_not_wait_forever() {
    let smsc = Smsc::builder().on_submit(|_| Vec::new()).start();
    let brief = SmppSettings {
        response_timeout: Duration::from_millis(300),
        ..four(&smsc)
    };
    let carrier = start(brief, &Sink::new());
    until_up(&carrier).await;
    let under_way = tokio::spawn({
        let carrier = carrier.clone();
        async move { submit(&carrier, &queued(1, "Hello")).await }
    });
    eventually("it is there", || smsc.seen().taken == 1).await;
    carrier.allow_binds(0);
    eventually("it is closed", || carrier.open_binds() == 0).await;
    let answer = under_way.await.expect("no panic");
    assert_eq!(answer, CarrierAnswer::Unknown);
}
