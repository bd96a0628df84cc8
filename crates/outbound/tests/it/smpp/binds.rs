//! A carrier has exactly the links that it may have, and closes the others gracefully.

use std::time::Duration;

use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health};
use outbound::SmppSettings;
use outbound::smpp::BindMode;
use testkit::smsc::{Action, Smsc};

use super::setup::{Sink, eventually, queued, settings, start, submit, until_up};

fn four_binds(smsc: &Smsc) -> SmppSettings {
    SmppSettings {
        binds: 4,
        ..settings(smsc)
    }
}

#[tokio::test]
async fn links_open_and_close_with_the_allowed_binds() {
    let smsc = Smsc::start();
    let carrier = start(four_binds(&smsc), &Sink::new());
    carrier.allow_binds(0);
    eventually("it has no binds", || carrier.open_binds() == 0).await;
    let before = smsc.log();
    for allowed in [2_u16, 3, 1, 4, 0, 1, 9] {
        carrier.allow_binds(allowed);
        let expected = allowed.min(4);
        eventually("it has the allowed number of binds", || {
            smsc.bound().len() == usize::from(expected) && carrier.open_binds() == expected
        })
        .await;
        eventually("its state shows them", || {
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
    let log = smsc.log();
    assert_eq!(
        log.unbinds - before.unbinds,
        6,
        "each was unbound, not cut off"
    );
    assert_eq!(log.most_bound, 4);
    carrier.stop().await;
    assert!(smsc.bound().is_empty());
}

#[tokio::test]
async fn a_pair_is_one_bind() {
    let smsc = Smsc::start();
    let pairs = SmppSettings {
        bind: BindMode::Pair,
        ..four_binds(&smsc)
    };
    let carrier = start(pairs, &Sink::new());
    for allowed in [4_u16, 1, 2] {
        carrier.allow_binds(allowed);
        eventually("both links of each pair are up", || {
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
        .on_submit(|_| vec![Action::Wait(Duration::from_millis(300)), Action::Answer])
        .start();
    // Slow enough that the second part is not sent yet when the link has to close.
    let slow = SmppSettings {
        max_per_second: Some(4),
        ..four_binds(&smsc)
    };
    let carrier = start(slow, &Sink::new());
    carrier.allow_binds(1);
    until_up(&carrier).await;
    let under_way = tokio::spawn({
        let carrier = carrier.clone();
        async move { submit(&carrier, &queued(1, &"a".repeat(200))).await }
    });
    eventually("the first part has arrived", || {
        smsc.log().submit_count == 1
    })
    .await;
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
    let log = smsc.log();
    assert_eq!((log.submit_count, log.unbinds), (2, 1));
}

/// The SMSC never answers, and the link closes anyway.
#[tokio::test]
async fn a_closing_link_does_not_wait_forever() {
    let smsc = Smsc::builder().on_submit(|_| Vec::new()).start();
    let brief = SmppSettings {
        response_timeout: Duration::from_millis(300),
        ..four_binds(&smsc)
    };
    let carrier = start(brief, &Sink::new());
    until_up(&carrier).await;
    let under_way = tokio::spawn({
        let carrier = carrier.clone();
        async move { submit(&carrier, &queued(1, "Hello")).await }
    });
    eventually("the message has arrived", || smsc.log().submit_count == 1).await;
    carrier.allow_binds(0);
    eventually("it is closed", || carrier.open_binds() == 0).await;
    let answer = under_way.await.expect("no panic");
    assert_eq!(answer, CarrierAnswer::Unknown);
}
