//! Deliveries from the SMSC.

use std::time::Duration;

use smpp::{Body, MessageResp, Pdu, SessionOptions, Status};

use crate::peer::{GatedHandler, bound, bound_with, message, options, until};

#[tokio::test]
async fn a_delivery_is_answered_only_after_it_is_handled() {
    let handler = GatedHandler::closed();
    let (_session, mut peer) = bound_with(options(), handler.clone()).await;
    peer.deliver(1, "a").await;
    until("it is being handled", || handler.started() == 1).await;
    // The response to this arrives first.
    peer.send(Pdu::new(2, Body::EnquireLink)).await;
    assert_eq!(peer.expect(Body::EnquireLinkResp).await, 2);
    handler.let_through(1);
    peer.expect_delivery_answer(1, Status::OK).await;
}

#[tokio::test]
async fn a_delivery_is_answered_with_the_handlers_status() {
    let (_session, mut peer) = bound(options()).await;
    for (sequence, text, status) in [
        (1, "take", Status::OK),
        (2, "refuse", Status::ESME_RX_P_APPN),
        (3, "panic", Status::ESME_RX_T_APPN),
        (4, "take", Status::OK),
    ] {
        peer.deliver(sequence, text).await;
        peer.expect_delivery_answer(sequence, status).await;
    }
}

#[tokio::test]
async fn data_sm_is_refused_by_default() {
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
async fn deliveries_are_handled_concurrently_up_to_a_limit() {
    let handler = GatedHandler::closed();
    let options = SessionOptions {
        incoming: 3,
        ..options()
    };
    let (_session, mut peer) = bound_with(options, handler.clone()).await;
    for sequence in 1..=5 {
        peer.deliver(sequence, "a").await;
    }
    // Queued behind the waiting messages: read only when there is a free permit.
    peer.send(Pdu::new(9, Body::EnquireLink)).await;
    until("three are being handled", || handler.started() == 3).await;
    handler.let_through(1);
    until("the fourth follows the first", || handler.started() == 4).await;
    handler.let_through(4);
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
    assert_eq!(handler.started(), 5);
}

#[tokio::test]
async fn slow_deliveries_do_not_make_the_answers_behind_them_late() {
    let handler = GatedHandler::closed();
    let options = SessionOptions {
        incoming: 1,
        response_timeout: Duration::from_millis(300),
        ..options()
    };
    let (session, mut peer) = bound_with(options, handler.clone()).await;
    let text = message("a");
    let script = async {
        let (sequence, _) = peer.take_message().await;
        peer.deliver(1, "slow").await;
        peer.deliver(2, "slow").await;
        peer.answer(sequence, "read late").await;
        until("one is being handled", || handler.started() == 1).await;
        tokio::time::sleep(Duration::from_millis(400)).await; // tidy: longer than the time for an answer
        handler.let_through(2);
        peer.expect_delivery_answer(1, Status::OK).await;
        peer.expect_delivery_answer(2, Status::OK).await;
    };
    let (answer, ()) = tokio::join!(session.submit(&text), script);
    assert_eq!(answer.expect("in time").message_id.as_ref(), b"read late");
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
