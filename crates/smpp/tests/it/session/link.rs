//! Link probes, and PDUs that make no sense.

use std::time::Duration;

use smpp::{Body, EndReason, FatalLength, Pdu, SessionOptions, Status, SubmitError};

use crate::notation::octets;
use crate::peer::{bound, in_time, message, options};

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_silent_smsc_is_probed_again_and_again() {
    let options = SessionOptions {
        enquire_every: SHORT,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    for _ in 0..3 {
        let sequence = peer.expect(Body::EnquireLink).await;
        peer.send(Pdu::new(sequence, Body::EnquireLinkResp)).await;
    }
    // Some SMSCs answer an unknown command with a nack, which counts as an answer.
    let sequence = peer.expect(Body::EnquireLink).await;
    let nack = Pdu::with_status(Status::ESME_RINVCMDID, sequence, Body::GenericNack);
    peer.send(nack).await;
    peer.expect(Body::EnquireLink).await;
    assert!(session.is_open());
}

#[tokio::test]
async fn an_smsc_that_does_not_answer_times_out() {
    let options = SessionOptions {
        enquire_every: SHORT,
        response_timeout: SHORT,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    peer.expect(Body::EnquireLink).await;
    assert_eq!(in_time(session.closed()).await, EndReason::NotAnswering);
    peer.expect_closed().await;
}

#[tokio::test]
async fn probes_from_the_smsc_are_answered() {
    let (_session, mut peer) = bound(options()).await;
    for sequence in [0, 1, 0x7FFF_FFFF, u32::MAX] {
        peer.send(Pdu::new(sequence, Body::EnquireLink)).await;
        assert_eq!(peer.expect(Body::EnquireLinkResp).await, sequence);
    }
}

#[tokio::test]
async fn malformed_pdus_are_refused_and_do_no_harm() {
    let (session, mut peer) = bound(options()).await;
    for (name, written, status) in [
        (
            "an unknown command",
            "00000013 00000ABC 00000000 00000005 'abc'",
            Status::ESME_RINVCMDID,
        ),
        (
            "a command for an SMSC",
            "00000014 00000003 00000000 00000005 00 0000 00",
            Status::ESME_RINVCMDID,
        ),
        (
            "a message that is cut off",
            "00000012 00000005 00000000 00000005 0001",
            Status::ESME_RINVCMDLEN,
        ),
        (
            "a text that is cut off",
            "00000023 00000005 00000000 00000005 00 0000 00 0000 00 000000 00 00 00000000 05 'hi'",
            Status::ESME_RINVMSGLEN,
        ),
    ] {
        peer.octets(&octets(written)).await;
        let expected = Pdu::with_status(status, 5, Body::GenericNack);
        assert_eq!(peer.pdu().await, expected, "{name}");
    }
    let text = message("a");
    let (answer, ()) = tokio::join!(session.submit(&text), async {
        let (sequence, _) = peer.take_message().await;
        peer.answer(sequence, 1).await;
    });
    answer.expect("answered");
}

#[tokio::test]
async fn an_absurd_length_ends_the_session() {
    let (session, mut peer) = bound(options()).await;
    let text = message("a");
    let (answer, ()) = tokio::join!(session.submit(&text), async {
        peer.take_message().await;
        peer.octets(&octets("00000003 80000004 00000000 00000002"))
            .await;
    });
    assert_eq!(answer, Err(SubmitError::Unknown));
    assert_eq!(
        in_time(session.closed()).await,
        EndReason::Length(FatalLength(3))
    );
    peer.expect_closed().await;
}

#[tokio::test]
async fn answers_that_come_octet_by_octet_are_put_together() {
    let (session, mut peer) = bound(options()).await;
    let text = message("a");
    let (answer, ()) = tokio::join!(session.submit(&text), async {
        let (sequence, _) = peer.take_message().await;
        let mut answer = octets("00000013 80000004 00000000 00000000 'a1'00");
        answer[12..16].copy_from_slice(&sequence.to_be_bytes());
        for octet in answer {
            peer.octets(&[octet]).await;
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(answer.expect("answered").message_id.as_ref(), b"a1");
}

#[tokio::test]
async fn without_an_interval_only_late_answers_trigger_a_probe() {
    let options = SessionOptions {
        enquire_every: Duration::ZERO,
        response_timeout: SHORT,
        late_answer: SHORT,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let text = message("a");
    let (answer, ()) = tokio::join!(session.submit(&text), async {
        // The message comes first, so no probe was sent before it.
        peer.take_message().await;
        let sequence = peer.expect(Body::EnquireLink).await;
        peer.send(Pdu::new(sequence, Body::EnquireLinkResp)).await;
    });
    assert_eq!(answer, Err(SubmitError::Unknown));
    assert!(session.is_open());
}
