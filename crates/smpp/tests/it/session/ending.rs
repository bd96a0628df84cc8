//! Graceful ends of sessions.

use std::time::Duration;

use futures_util::future::join_all;
use smpp::{Body, EndReason, Pdu, SessionOptions, Status, SubmitError};

use crate::peer::{GatedHandler, bound, bound_with, in_time, message, options, until};

#[tokio::test]
async fn unbinding_waits_for_a_full_window() {
    let (session, mut peer) = bound(options()).await;
    let messages: Vec<_> = (0..6).map(|n| message(&n.to_string())).collect();
    let answers = join_all(messages.iter().map(|message| session.submit(message)));
    let script = async {
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(peer.take_message().await.0);
        }
        let unbinding = tokio::spawn({
            let session = session.clone();
            async move { session.unbind().await }
        });
        until("it accepts no more messages", || !session.is_open()).await;
        assert_eq!(
            session.submit(&message("too late")).await,
            Err(SubmitError::NotSent)
        );
        for sequence in taken {
            peer.answer(sequence, sequence).await;
        }
        let sequence = peer.expect(Body::Unbind).await;
        peer.send(Pdu::new(sequence, Body::UnbindResp)).await;
        peer.expect_closed().await;
        in_time(unbinding).await.expect("unbound");
    };
    let (answers, ()) = tokio::join!(answers, script);
    let (in_window, waiting) = answers.split_at(4);
    assert!(in_window.iter().all(Result::is_ok), "{in_window:?}");
    assert!(
        waiting
            .iter()
            .all(|answer| *answer == Err(SubmitError::NotSent)),
        "{waiting:?}"
    );
    assert_eq!(session.closed().await, EndReason::Unbound);
}

#[tokio::test]
async fn unbinding_ends_without_an_answer_too() {
    for closes in [true, false] {
        let options = SessionOptions {
            response_timeout: if closes {
                options().response_timeout
            } else {
                Duration::from_millis(50)
            },
            ..options()
        };
        let (session, mut peer) = bound(options).await;
        let script = async {
            peer.expect(Body::Unbind).await;
            (!closes).then_some(peer)
        };
        let ((), _peer) = tokio::join!(in_time(session.unbind()), script);
        assert_eq!(
            session.closed().await,
            EndReason::Unbound,
            "closes: {closes}"
        );
    }
}

#[tokio::test]
async fn an_smsc_that_unbinds_gets_its_answers_first() {
    let handler = GatedHandler::closed();
    let (session, mut peer) = bound_with(options(), handler.clone()).await;
    peer.deliver(8, "slow").await;
    until("it is being handled", || handler.started() == 1).await;
    let text = message("under way");
    let script = async {
        let (under_way, _) = peer.take_message().await;
        peer.send(Pdu::new(9, Body::Unbind)).await;
        until("it accepts no more messages", || !session.is_open()).await;
        assert_eq!(
            session.submit(&message("too late")).await,
            Err(SubmitError::NotSent)
        );
        handler.let_through(1);
        peer.expect_delivery_answer(8, Status::OK).await;
        assert_eq!(peer.expect(Body::UnbindResp).await, 9);
        // The session still reads.
        peer.answer(under_way, "after all").await;
        peer.expect_closed().await;
    };
    let (answer, ()) = tokio::join!(session.submit(&text), script);
    assert_eq!(answer.expect("answered").message_id.as_ref(), b"after all");
    assert_eq!(in_time(session.closed()).await, EndReason::UnboundByPeer);
}

#[tokio::test]
async fn both_may_unbind_at_once() {
    let (session, mut peer) = bound(options()).await;
    let script = async {
        let ours = peer.expect(Body::Unbind).await;
        peer.send(Pdu::new(4, Body::Unbind)).await;
        assert_eq!(peer.expect(Body::UnbindResp).await, 4);
        peer.send(Pdu::new(ours, Body::UnbindResp)).await;
        peer.expect_closed().await;
    };
    tokio::join!(in_time(session.unbind()), script);
    assert_eq!(session.closed().await, EndReason::Unbound);
}

#[tokio::test]
async fn dropping_the_last_handle_closes() {
    let (session, mut peer) = bound(options()).await;
    let other = session.clone();
    drop(session);
    let text = message("a");
    let (answer, ()) = tokio::join!(other.submit(&text), async {
        let (sequence, _) = peer.take_message().await;
        peer.answer(sequence, 1).await;
    });
    answer.expect("a handle is left");
    drop(other);
    peer.expect(Body::Unbind).await;
    peer.expect_closed().await;
}

#[tokio::test]
async fn a_session_without_messages_unbinds() {
    let options = SessionOptions {
        idle: Some(Duration::from_millis(100)),
        enquire_every: Duration::from_millis(20),
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    loop {
        let pdu = peer.pdu().await;
        match pdu.body {
            Body::EnquireLink => {
                peer.send(Pdu::new(pdu.sequence, Body::EnquireLinkResp))
                    .await;
            }
            Body::Unbind => {
                peer.send(Pdu::new(pdu.sequence, Body::UnbindResp)).await;
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(in_time(session.closed()).await, EndReason::Idle);
}

#[tokio::test]
async fn the_end_reason_has_a_readable_text() {
    let (session, peer) = bound(options()).await;
    drop(peer);
    let ended = in_time(session.closed()).await;
    assert_eq!(ended.to_string(), "the SMSC closed the connection");
    assert_eq!(
        in_time(session.closed()).await,
        ended,
        "every caller gets the same reason"
    );
}
