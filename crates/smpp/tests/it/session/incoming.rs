//! Deliveries from the SMSC.

use std::time::Duration;

use smpp::{Body, MessageResp, Pdu, SessionOptions, Status};

use crate::peer::{GatedHandler, bound, bound_with, message, options, until};

#[tokio::test]
async fn is_answered_once_it_is_handled_and_not_before() {
    let taking = GatedHandler::closed();
    let (_session, mut peer) = bound_with(options(), taking.clone()).await;
    peer.bring(1, "a").await;
    until("it is being handled", || taking.begun() == 1).await;
    // The response to this arrives first.
    peer.send(Pdu::new(2, Body::EnquireLink)).await;
    assert_eq!(peer.expect(Body::EnquireLinkResp).await, 2);
    taking.let_through(1);
    peer.expect_taken(1, Status::OK).await;
}

#[tokio::test]
async fn is_answered_with_the_handlers_status() {
    let (_session, mut peer) = bound(options()).await;
    for (sequence, text, status) in [
        (1, "take", Status::OK),
        (2, "refuse", Status::ESME_RX_P_APPN),
        (3, "panic", Status::ESME_RX_T_APPN),
        (4, "take", Status::OK),
    ] {
        peer.bring(sequence, text).await;
        peer.expect_taken(sequence, status).await;
    }
}

#[tokio::test]
async fn by_data_sm_is_refused_unless_wanted() {
    let (_session, mut peer) = bound(options()).await;
    let data = Body::DataSm(Box::default());
    peer.send(Pdu::new(6, data)).await;
    let expected = Pdu::with_status(
        Status::ESME_RINVCMDID,
        6,
        Body::DataSmResp(MessageResp::default()),
    );
    assert_eq!(peer.pdu().await, expected);
}

#[tokio::test]
async fn is_handled_concurrently_up_to_a_limit() {
    let taking = GatedHandler::closed();
    let options = SessionOptions {
        incoming: 3,
        ..options()
    };
    let (_session, mut peer) = bound_with(options, taking.clone()).await;
    for sequence in 1..=5 {
        peer.bring(sequence, "a").await;
    }
    // Queued behind the waiting messages: read only when there is a free permit.
    peer.send(Pdu::new(9, Body::EnquireLink)).await;
    until("three are being handled", || taking.begun() == 3).await;
    taking.let_through(1);
    until("the fourth follows the first", || taking.begun() == 4).await;
    taking.let_through(4);
    let mut answered = Vec::new();
    for _ in 0..6 {
        let pdu = peer.pdu().await;
        if pdu.body == Body::EnquireLinkResp {
            assert!(!answered.is_empty(), "it was behind the fifth message");
        }
        answered.push(pdu.sequence);
    }
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3, 4, 5, 9]);
    assert_eq!(taking.begun(), 5);
}

#[tokio::test]
async fn does_not_make_answers_late_that_lie_behind_it() {
    let taking = GatedHandler::closed();
    let options = SessionOptions {
        incoming: 1,
        response_timeout: Duration::from_millis(300),
        ..options()
    };
    let (session, mut peer) = bound_with(options, taking.clone()).await;
    let text = message("a");
    let script = async {
        let (sequence, _) = peer.take_message().await;
        peer.bring(1, "slow").await;
        peer.bring(2, "slow").await;
        peer.answer(sequence, "unread for long").await;
        until("one is being handled", || taking.begun() == 1).await;
        tokio::time::sleep(Duration::from_millis(400)).await; // tidy: longer than the time for an answer
        taking.let_through(2);
        peer.expect_taken(1, Status::OK).await;
        peer.expect_taken(2, Status::OK).await;
    };
    let (answer, ()) = tokio::join!(session.submit(&text), script);
    assert_eq!(
        answer.expect("in time").message_id.as_ref(),
        b"unread for long"
    );
}

#[tokio::test]
async fn alerts_and_outbinds_are_ignored() {
    let (session, mut peer) = bound(options()).await;
    peer.send(Pdu::new(1, Body::AlertNotification(Box::default())))
        .await;
    peer.send(Pdu::new(2, Body::Outbind(Box::default()))).await;
    peer.send(Pdu::new(3, Body::EnquireLink)).await;
    assert_eq!(peer.expect(Body::EnquireLinkResp).await, 3);
    assert!(session.is_open());
}
