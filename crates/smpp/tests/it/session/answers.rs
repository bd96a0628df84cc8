//! Answers in any order, late, missing and malformed.

use std::time::Duration;

use futures_util::future::join_all;
use smpp::{Body, EndReason, MessageResp, Pdu, SessionOptions, Status, SubmitError, Tlvs, tag};

use crate::notation::octets;
use crate::peer::{bound, in_time, message, options, until};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn answers_may_come_in_any_order() {
    let (session, mut peer) = bound(options()).await;
    let messages = ["a", "b", "c", "d"].map(message);
    let answers = join_all(messages.iter().map(|message| session.submit(message)));
    let script = async {
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(peer.take_message().await);
        }
        for (sequence, text) in taken.into_iter().rev() {
            peer.answer(sequence, format!("id-{text}")).await;
        }
    };
    let (answers, ()) = tokio::join!(answers, script);
    for (answer, id) in answers.into_iter().zip(["id-a", "id-b", "id-c", "id-d"]) {
        let answer = answer.expect("answered");
        assert_eq!(answer.message_id.as_ref(), id.as_bytes());
        assert!(answer.status.is_ok());
    }
    assert_eq!(session.in_flight(), 0);
}

#[tokio::test]
async fn answers_of_every_form_are_understood() {
    let (session, mut peer) = bound(options()).await;
    let mut with_reason = Tlvs::new();
    with_reason.push_c_string(tag::ADDITIONAL_STATUS_INFO_TEXT, b"no credit");
    let refused = MessageResp {
        message_id: "x".into(),
        tlvs: with_reason.clone(),
    };
    let refusal = Pdu::with_status(
        Status::ESME_RSUBMITFAIL,
        0,
        Body::SubmitSmResp(refused.clone()),
    );
    let nack = |status| Pdu::with_status(status, 0, Body::GenericNack);
    let none = Tlvs::new;
    let throttled = Body::SubmitSmResp(MessageResp::default());
    for (name, mut pdu, status, id, tlvs) in [
        (
            "refused with reasons",
            refusal,
            Status::ESME_RSUBMITFAIL,
            "x",
            with_reason,
        ),
        (
            "refused without a body",
            Pdu::with_status(Status::ESME_RTHROTTLED, 0, throttled),
            Status::ESME_RTHROTTLED,
            "",
            none(),
        ),
        (
            "a nack",
            nack(Status::ESME_RINVCMDLEN),
            Status::ESME_RINVCMDLEN,
            "",
            none(),
        ),
        (
            "a nack that says OK",
            nack(Status::OK),
            Status::ESME_RUNKNOWNERR,
            "",
            none(),
        ),
    ] {
        let text = message(name);
        let script = async {
            pdu.sequence = peer.take_message().await.0;
            peer.send(pdu).await;
        };
        let (answer, ()) = tokio::join!(session.submit(&text), script);
        let answer = answer.expect(name);
        assert_eq!(answer.status, status, "{name}");
        assert_eq!(answer.message_id.as_ref(), id.as_bytes(), "{name}");
        assert_eq!(answer.tlvs, tlvs, "{name}");
    }
}

#[tokio::test]
async fn unexpected_answers_are_ignored() {
    let (session, mut peer) = bound(options()).await;
    let text = message("a");
    let script = async {
        let (sequence, _) = peer.take_message().await;
        peer.answer(sequence + 1000, "other").await;
        peer.send(Pdu::with_status(Status::ESME_RSYSERR, 0, Body::GenericNack))
            .await;
        peer.send(Pdu::new(sequence, Body::EnquireLinkResp)).await;
        peer.send(Pdu::new(sequence, Body::UnbindResp)).await;
        peer.octets(&octets("00000011 80000ABC 00000000 00000001 00"))
            .await;
        peer.answer(sequence, "right").await;
        peer.answer(sequence, "again").await;
    };
    let (answer, ()) = tokio::join!(session.submit(&text), script);
    assert_eq!(answer.expect("answered").message_id.as_ref(), b"right");
    assert!(session.is_open());
}

#[tokio::test]
async fn a_missing_answer_is_unknown_and_the_link_is_probed() {
    let options = SessionOptions {
        window: 1,
        response_timeout: SHORT,
        late_answer: SHORT,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let (first, second) = (message("first"), message("second"));
    let script = async {
        let (late, text) = peer.take_message().await;
        assert_eq!(text, "first");
        // The second message waits for the window until the first gives up.
        let next = peer.pdu().await;
        let (probe, second) = if next.body == Body::EnquireLink {
            (next.sequence, peer.take_message().await.0)
        } else {
            (peer.expect(Body::EnquireLink).await, next.sequence)
        };
        peer.send(Pdu::new(probe, Body::EnquireLinkResp)).await;
        peer.answer(late, "late").await;
        peer.answer(second, "second").await;
    };
    let (one, two, ()) = tokio::join!(session.submit(&first), session.submit(&second), script);
    assert_eq!(one, Err(SubmitError::Unknown));
    assert_eq!(two.expect("answered").message_id.as_ref(), b"second");
    assert!(session.is_open());
    assert_eq!(session.in_flight(), 0);
}

#[tokio::test]
async fn late_answers_count_while_the_link_is_alive() {
    let options = SessionOptions {
        window: 1,
        response_timeout: SHORT,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let text = message("a");
    let script = async {
        let (late, _) = peer.take_message().await;
        // Three response timeouts pass, and the link answers each probe.
        for _ in 0..3 {
            let probe = peer.expect(Body::EnquireLink).await;
            assert_eq!(session.in_flight(), 1, "it stays in the window");
            peer.send(Pdu::new(probe, Body::EnquireLinkResp)).await;
        }
        peer.answer(late, "late").await;
    };
    let (answer, ()) = tokio::join!(session.submit(&text), script);
    assert_eq!(answer.expect("answered").message_id.as_ref(), b"late");
    assert!(session.is_open());
}

#[tokio::test]
async fn a_missing_answer_on_a_dead_link_ends_the_session() {
    let options = SessionOptions {
        response_timeout: SHORT,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let text = message("a");
    let (answer, _) = tokio::join!(session.submit(&text), peer.take_message());
    assert_eq!(answer, Err(SubmitError::Unknown));
    assert_eq!(in_time(session.closed()).await, EndReason::NotAnswering);
    assert_eq!(session.submit(&text).await, Err(SubmitError::NotSent));
}

#[tokio::test]
async fn missing_answers_are_unknown_when_the_link_dies() {
    let (session, mut peer) = bound(options()).await;
    let messages = ["a", "b"].map(message);
    let answers = join_all(messages.iter().map(|message| session.submit(message)));
    let script = async {
        let (first, _) = peer.take_message().await;
        peer.take_message().await;
        // Half an answer, then nothing.
        let half = octets("00000020 80000004 00000000 00000002 'abc'");
        peer.answer(first, "whole").await;
        peer.octets(&half).await;
        drop(peer);
    };
    let (answers, ()) = tokio::join!(answers, script);
    let [first, second] = answers.try_into().expect("two");
    assert_eq!(first.expect("answered").message_id.as_ref(), b"whole");
    assert_eq!(second, Err(SubmitError::Unknown));
    assert_eq!(in_time(session.closed()).await, EndReason::ClosedByPeer);
    assert!(!session.is_open());
}

#[tokio::test]
async fn the_answer_to_an_abandoned_message_frees_the_window() {
    let options = SessionOptions {
        window: 1,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let given_up = {
        let session = session.clone();
        tokio::spawn(async move { session.submit(&message("given up")).await })
    };
    let (sequence, _) = peer.take_message().await;
    given_up.abort();
    assert!(given_up.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(session.in_flight(), 1, "the SMSC still has it");
    peer.answer(sequence, "unheard").await;
    until("the window is free", || session.in_flight() == 0).await;
    let text = message("next");
    let (answer, ()) = tokio::join!(session.submit(&text), async {
        let (sequence, _) = peer.take_message().await;
        peer.answer(sequence, "next").await;
    });
    assert_eq!(answer.expect("answered").message_id.as_ref(), b"next");
}
