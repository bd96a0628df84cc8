//! Links: how they bind, share the load, reconnect and end.

use std::net::SocketAddr;
use std::time::Duration;

use domain::Code;
use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health};
use outbound::SmppSettings;
use outbound::smpp::{BindMode, SmppTls};
use testkit::smsc::{Action, BindAction, BindKind, Smsc};

use super::setup::{
    Sink, connected, eventually, queued, settings, start, submit, submit_until_taken, taken,
    until_up,
};

#[tokio::test]
async fn links_bind_as_configured() {
    use BindKind::{Receiver, Transceiver, Transmitter};
    for (bind, expected) in [
        (BindMode::Transceiver, vec![Transceiver; 2]),
        (BindMode::Transmitter, vec![Transmitter; 2]),
        (
            BindMode::Pair,
            vec![Receiver, Receiver, Transmitter, Transmitter],
        ),
    ] {
        let smsc = Smsc::start();
        let chosen = SmppSettings {
            bind,
            binds: 2,
            window: 7,
            system_type: "SMPP".to_owned(),
            ..settings(&smsc)
        };
        let (carrier, _) = connected(chosen).await;
        assert_eq!(carrier.window(), 14);
        let state = carrier.state();
        assert_eq!(usize::from(state.links), expected.len());
        assert_eq!((state.links_up, state.note), (state.links, None));
        let binds = smsc.log().binds;
        let mut kinds: Vec<BindKind> = binds.iter().map(|bind| bind.kind).collect();
        kinds.sort_by_key(|kind| format!("{kind:?}"));
        let mut expected = expected;
        expected.sort_by_key(|kind| format!("{kind:?}"));
        assert_eq!(kinds, expected);
        for bind in binds {
            assert_eq!(bind.system_id, "user");
            assert_eq!(bind.password, "hush-hush");
            assert_eq!(bind.system_type, "SMPP");
            assert_eq!(bind.interface_version, 0x34);
        }
    }
}

#[tokio::test]
async fn the_least_busy_link_is_used() {
    let smsc = Smsc::builder()
        .on_submit(|_| vec![Action::WaitForSubmits(4), Action::Answer])
        .start();
    let two = SmppSettings {
        binds: 2,
        window: 2,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(two).await;
    let messages = [1, 2, 3, 4].map(|id| queued(id, "Hi"));
    let [a, b, c, d] = messages.each_ref().map(|queued| submit(&carrier, queued));
    for answer in <[CarrierAnswer; 4]>::from(tokio::join!(a, b, c, d)) {
        assert!(matches!(answer, CarrierAnswer::Taken(_)), "{answer:?}");
    }
    let mut connections: Vec<usize> = smsc.log().submits.iter().map(|s| s.connection).collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 0, 1, 1]);
}

#[tokio::test]
async fn stopping_unbinds_without_reconnecting() {
    let smsc = Smsc::start();
    let pair = SmppSettings {
        bind: BindMode::Pair,
        binds: 2,
        ..settings(&smsc)
    };
    let (carrier, _) = connected(pair).await;
    submit(&carrier, &queued(1, "Hi")).await;
    carrier.stop().await;
    assert_eq!(
        smsc.log().unbinds,
        4,
        "every link is unbound when stop returns"
    );
    smsc.wait_until("all connections are closed", |log| log.closed == 4)
        .await;
    assert_eq!(smsc.log().binds.len(), 4);
    assert_eq!(carrier.health(), Health::Down);
    let answer = submit(&carrier, &queued(2, "Hi")).await;
    assert_eq!(answer, CarrierAnswer::NotNow(Code::LINK_DOWN));
}

#[tokio::test]
async fn a_dropped_carrier_closes_its_links() {
    let smsc = Smsc::start();
    let (carrier, _) = connected(settings(&smsc)).await;
    drop(carrier);
    smsc.wait_until("the connection is closed", |log| log.closed == 1)
        .await;
    assert_eq!(smsc.log().unbinds, 1);
}

#[tokio::test]
async fn a_refused_bind_is_reported_and_retried() {
    for (status, advice) in [
        (
            0x0E,
            "ESME_RINVPASWD (0x0000000E), wrong password; check system_id and password",
        ),
        (0x0D, "ESME_RBINDFAIL"),
        (
            0x3FF,
            "0x000003FF, for a reason of its own; ask the carrier",
        ),
    ] {
        let smsc = Smsc::builder()
            .on_bind(move |bind| match bind.number {
                0..3 => BindAction::Refuse(status),
                _ => BindAction::Accept,
            })
            .start();
        // Long enough to be observed.
        let slow = SmppSettings {
            reconnect_after: Duration::from_millis(100),
            ..settings(&smsc)
        };
        let carrier = start(slow, &Sink::new());
        eventually("the refusal is reported", || {
            let state = carrier.state();
            let note = state.note.unwrap_or_default();
            assert!(!note.contains("hush"), "{note}");
            state.health == Health::Down && note.contains(advice)
        })
        .await;
        let answer = submit(&carrier, &queued(1, "Hi")).await;
        assert_eq!(answer, CarrierAnswer::NotNow(Code::LINK_DOWN));
        until_up(&carrier).await;
        assert_eq!(carrier.state().note, None);
        assert_eq!(smsc.log().binds.len(), 4);
        assert_eq!(submit(&carrier, &queued(1, "Hi")).await, taken(1_000_000));
    }
}

#[tokio::test]
async fn failed_binds_are_retried() {
    let absurd = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x80, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1,
    ];
    let acts = [
        BindAction::HangUp,
        BindAction::Octets(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        BindAction::Octets(absurd.to_vec()),
        BindAction::Ignore,
    ];
    let tries = acts.len() + 1;
    let smsc = Smsc::builder()
        .on_bind(move |bind| acts.get(bind.number).cloned().unwrap_or(BindAction::Accept))
        .start();
    let hasty = SmppSettings {
        response_timeout: Duration::from_millis(300),
        ..settings(&smsc)
    };
    let (carrier, _) = connected(hasty).await;
    assert_eq!(smsc.log().binds.len(), tries);
    assert_eq!(submit(&carrier, &queued(1, "Hi")).await, taken(1_000_000));
}

#[tokio::test]
async fn a_carrier_that_recovers_is_used_again() {
    let smsc = Smsc::start();
    let address: SocketAddr = smsc.addr();
    let (carrier, _) = connected(settings(&smsc)).await;
    drop(smsc);
    eventually("the loss is noticed", || carrier.health() == Health::Down).await;
    let answer = submit(&carrier, &queued(1, "Hi")).await;
    assert_eq!(answer, CarrierAnswer::NotNow(Code::LINK_DOWN));
    eventually("the note says why", || {
        let note = carrier.state().note.unwrap_or_default();
        note.contains("cannot connect to 127.0.0.1")
    })
    .await;
    let smsc = Smsc::builder().bind(address).start();
    until_up(&carrier).await;
    assert_eq!(submit_until_taken(&carrier, &queued(1, "Hi")).await, 1);
    assert_eq!(smsc.log().submit_count, 1);
}

#[tokio::test]
async fn a_carrier_with_half_its_links_is_strained_and_sends() {
    let smsc = Smsc::builder()
        .on_bind(|bind| match bind.number {
            0 => BindAction::Accept,
            _ => BindAction::Refuse(0x05),
        })
        .start();
    let two = SmppSettings {
        binds: 2,
        ..settings(&smsc)
    };
    let carrier = start(two, &Sink::new());
    eventually("a link is up and one refused", || {
        let state = carrier.state();
        let note = state.note.unwrap_or_default();
        state.health == Health::Strained && note.contains("check 'binds'")
    })
    .await;
    assert_eq!(carrier.state().links_up, 1);
    assert_eq!(submit(&carrier, &queued(1, "Hi")).await, taken(1_000_000));
}

#[tokio::test]
async fn a_link_that_the_carrier_considers_unbound_is_replaced() {
    let smsc = Smsc::builder()
        .on_submit(|submit| match submit.number {
            0 => vec![Action::Refuse(0x04)],
            _ => vec![Action::Answer],
        })
        .start();
    let (carrier, _) = connected(settings(&smsc)).await;
    let answer = submit(&carrier, &queued(1, "Hi")).await;
    assert_eq!(answer, CarrierAnswer::NotNow(Code::LINK_DOWN));
    smsc.wait_until("it binds again", |log| log.binds.len() == 2)
        .await;
    until_up(&carrier).await;
    assert_eq!(submit(&carrier, &queued(1, "Hi")).await, taken(1_000_001));
}

#[tokio::test]
async fn impossible_tls_settings_are_reported() {
    let smsc = Smsc::start();
    let untrusting = SmppSettings {
        tls: Some(SmppTls {
            authorities: vec![vec![1, 2, 3].into()],
            ..SmppTls::default()
        }),
        ..settings(&smsc)
    };
    let carrier = start(untrusting, &Sink::new());
    let note = carrier.state().note.unwrap_or_default();
    assert!(note.contains("check tls"), "{note}");
    assert_eq!(carrier.health(), Health::Down);

    let by_tls = SmppSettings {
        tls: Some(SmppTls::default()),
        ..settings(&smsc)
    };
    let carrier = start(by_tls, &Sink::new());
    eventually("the handshake fails", || {
        let note = carrier.state().note.unwrap_or_default();
        note.contains("TLS handshake")
    })
    .await;
    assert!(smsc.log().binds.is_empty(), "nothing is sent unencrypted");
}
