//! Opening sessions, and failures to open them.

use std::sync::Arc;
use std::time::Duration;

use smpp::{
    Address, BindKind, BindResp, Body, ConnectError, Pdu, Session, SessionOptions, Status, Tlvs,
    tag,
};
use tokio::net::TcpStream;

use crate::notation::octets;
use crate::peer::{GatedHandler, Peer, Smsc, in_time, message, options};

/// Connects while `script` plays the SMSC.
async fn connect_with_script<F>(
    options: SessionOptions,
    script: impl FnOnce(Peer<TcpStream>) -> F,
) -> (Result<Session, ConnectError>, F::Output)
where
    F: Future,
{
    let smsc = Smsc::open().await;
    let address = smsc.address();
    let play = async { script(smsc.accept().await).await };
    tokio::join!(
        Session::connect(&address, options, Arc::new(GatedHandler::default())),
        play
    )
}

#[tokio::test]
async fn a_bind_sends_its_options_and_keeps_the_answer() {
    for kind in [
        BindKind::Transmitter,
        BindKind::Receiver,
        BindKind::Transceiver,
    ] {
        let options = SessionOptions {
            bind: kind,
            system_type: "vm".into(),
            interface_version: 0x50,
            address_range: Address::new(1, 1, "316"),
            first_sequence: 77,
            ..options()
        };
        let (session, (peer, bind)) = connect_with_script(options, async |mut peer| {
            let Pdu { sequence, body, .. } = peer.pdu().await;
            let Body::Bind(found, bind) = body else {
                panic!("{body:?}");
            };
            assert_eq!((sequence, found), (77, kind));
            let mut tlvs = Tlvs::new();
            tlvs.push_u8(tag::SC_INTERFACE_VERSION, 0x34);
            let resp = BindResp {
                system_id: "smsc".into(),
                tlvs,
            };
            peer.send(Pdu::new(sequence, Body::BindResp(kind, resp)))
                .await;
            (peer, bind)
        })
        .await;
        let session = session.expect("bound");
        assert_eq!(
            (bind.system_id.as_ref(), bind.password.as_ref()),
            (&b"esme"[..], &b"pw"[..])
        );
        assert_eq!(
            (bind.system_type.as_ref(), bind.interface_version),
            (&b"vm"[..], 0x50)
        );
        assert_eq!(bind.address_range, Address::new(1, 1, "316"));
        assert_eq!(session.peer().system_id.as_ref(), b"smsc");
        assert_eq!(session.peer().tlvs.sc_interface_version(), Some(0x34));
        assert!(session.is_open());
        drop(peer);
    }
}

#[tokio::test]
async fn a_refused_bind_says_why() {
    for (name, body, status, expected) in [
        (
            "by its answer",
            Body::BindResp(BindKind::Transceiver, BindResp::default()),
            Status::ESME_RINVPASWD,
            Status::ESME_RINVPASWD,
        ),
        (
            "by a nack",
            Body::GenericNack,
            Status::ESME_RINVCMDID,
            Status::ESME_RINVCMDID,
        ),
        (
            "by a nack without a status",
            Body::GenericNack,
            Status::OK,
            Status::ESME_RBINDFAIL,
        ),
    ] {
        let (session, ()) = connect_with_script(options(), async |mut peer| {
            let sequence = peer.pdu().await.sequence;
            peer.send(Pdu::with_status(status, sequence, body)).await;
            peer.expect_closed().await;
        })
        .await;
        match session {
            Err(ConnectError::Refused(found)) => assert_eq!(found, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn other_pdus_before_the_answer_do_no_harm() {
    let (session, mut peer) = connect_with_script(options(), async |mut peer| {
        let bind = peer.pdu().await;
        // An enquiry, an unknown command and an unreadable message.
        peer.send(Pdu::new(5, Body::EnquireLink)).await;
        peer.octets(&octets("00000012 00000ABC 00000000 00000006 'xy'"))
            .await;
        peer.octets(&octets("00000011 00000005 00000000 00000007 00"))
            .await;
        assert_eq!(peer.expect(Body::EnquireLinkResp).await, 5);
        let resp = Body::BindResp(BindKind::Transceiver, BindResp::default());
        peer.send(Pdu::new(bind.sequence, resp)).await;
        peer
    })
    .await;
    let session = session.expect("bound");
    let text = message("a");
    let (answer, ()) = tokio::join!(session.submit(&text), async {
        let (sequence, _) = peer.take_message().await;
        peer.answer(sequence, 1).await;
    });
    assert_eq!(answer.expect("answered").status, Status::OK);
}

#[tokio::test]
async fn a_message_right_behind_the_answer_is_handled() {
    let (session, mut peer) = connect_with_script(options(), async |mut peer| {
        let sequence = peer.pdu().await.sequence;
        let mut both = bytes::BytesMut::new();
        let resp = Body::BindResp(BindKind::Transceiver, BindResp::default());
        smpp::encode(&Pdu::new(sequence, resp), &mut both).expect("valid");
        let brought = Body::DeliverSm(Box::new(message("at once")));
        smpp::encode(&Pdu::new(9, brought), &mut both).expect("valid");
        peer.octets(&both).await;
        peer
    })
    .await;
    let _session = session.expect("bound");
    peer.expect_delivery_answer(9, Status::OK).await;
}

#[tokio::test]
async fn failures_to_answer_are_distinguished() {
    let short = SessionOptions {
        bind_timeout: Duration::from_millis(50),
        ..options()
    };
    let (silent, peer) = connect_with_script(short, async |mut peer| {
        peer.pdu().await;
        peer
    })
    .await;
    assert!(
        matches!(silent, Err(ConnectError::BindTimeout)),
        "{silent:?}"
    );
    drop(peer);

    let (gone, ()) = connect_with_script(options(), async |mut peer| {
        peer.pdu().await;
    })
    .await;
    assert!(matches!(gone, Err(ConnectError::Closed)), "{gone:?}");

    let (other, _peer) = connect_with_script(options(), async |mut peer| {
        peer.pdu().await;
        peer.octets(b"HTTP/1.1 400 Bad Request\r\n").await;
        peer
    })
    .await;
    assert!(matches!(other, Err(ConnectError::Length(_))), "{other:?}");
}

#[tokio::test]
async fn a_failure_to_connect_is_not_a_refusal() {
    let smsc = Smsc::open().await;
    let address = smsc.address();
    drop(smsc);
    let incoming = Arc::new(GatedHandler::default());
    let dead = in_time(Session::connect(&address, options(), incoming.clone())).await;
    assert!(
        matches!(dead, Err(ConnectError::Connect { .. })),
        "{dead:?}"
    );
    let unknown = in_time(Session::connect(
        "no port here",
        options(),
        incoming.clone(),
    ))
    .await;
    assert!(
        matches!(unknown, Err(ConnectError::Resolve { .. })),
        "{unknown:?}"
    );
    let other_family = SessionOptions {
        source: Some("::1".parse().expect("an address")),
        ..options()
    };
    let source = in_time(Session::connect(&address, other_family, incoming)).await;
    assert!(
        matches!(source, Err(ConnectError::Connect { .. })),
        "{source:?}"
    );
}

#[tokio::test]
async fn connects_from_the_configured_source_address() {
    let smsc = Smsc::open().await;
    let address = smsc.address();
    let options = SessionOptions {
        source: Some("127.0.0.2".parse().expect("an address")),
        ..options()
    };
    let accept = async {
        let mut peer = smsc.accept().await;
        peer.take_bind().await;
        peer.stream().peer_addr().expect("connected").ip()
    };
    let (session, from) = tokio::join!(
        Session::connect(&address, options, Arc::new(GatedHandler::default())),
        accept
    );
    assert_eq!(from.to_string(), "127.0.0.2");
    session.expect("bound");
}

#[tokio::test]
async fn a_system_id_that_does_not_fit_is_not_sent() {
    let options = SessionOptions {
        system_id: "a\0b".into(),
        ..options()
    };
    let (session, ()) =
        connect_with_script(options, async |mut peer| peer.expect_closed().await).await;
    assert!(matches!(session, Err(ConnectError::Encode(_))));
}
