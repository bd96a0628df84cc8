//! The window and its sequence numbers.

use futures_util::future::join_all;
use smpp::{Address, Body, EncodeError, Pdu, SessionOptions, SubmitError};

use crate::peer::{bound, message, options, until};

#[tokio::test]
async fn no_more_than_the_window_is_in_flight() {
    let options = SessionOptions {
        window: 3,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let messages: Vec<_> = (0..10).map(|n| message(&n.to_string())).collect();
    let answers = join_all(messages.iter().map(|message| session.submit(message)));
    let script = async {
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(peer.take_message().await.0);
        }
        for left in (0..7).rev() {
            assert_eq!(session.in_flight(), 3);
            // No message can be hidden behind the response to this.
            peer.send(Pdu::new(9, Body::EnquireLink)).await;
            peer.expect(Body::EnquireLinkResp).await;
            peer.answer(waiting.remove(0), left).await;
            waiting.push(peer.take_message().await.0);
        }
        for sequence in waiting {
            peer.answer(sequence, 0).await;
        }
    };
    let (answers, ()) = tokio::join!(answers, script);
    assert!(answers.into_iter().all(|answer| answer.is_ok()));
}

#[tokio::test]
async fn sequence_numbers_wrap_and_skip_those_in_flight() {
    // The bind has the last but one sequence number, the first message the last.
    let options = SessionOptions {
        first_sequence: 0x7FFF_FFFE,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let messages: Vec<_> = (0..3).map(|n| message(&n.to_string())).collect();
    let answers = join_all(messages.iter().map(|message| session.submit(message)));
    let script = async {
        let mut numbers = Vec::new();
        for _ in 0..3 {
            let (sequence, _) = peer.take_message().await;
            numbers.push(sequence);
        }
        for sequence in &numbers {
            peer.answer(*sequence, *sequence).await;
        }
        numbers
    };
    let (answers, numbers) = tokio::join!(answers, script);
    assert_eq!(numbers, [0x7FFF_FFFF, 1, 2]);
    for (answer, number) in answers.into_iter().zip(numbers) {
        let id = answer.expect("answered").message_id;
        assert_eq!(id.as_ref(), number.to_string().as_bytes());
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_encoded_does_not_use_the_window() {
    let options = SessionOptions {
        window: 1,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let mut wrong = message("a");
    wrong.destination = Address::new(1, 1, "123456789012345678901");
    let expected = EncodeError::TooLong {
        field: "destination_addr",
        length: 21,
        limit: 20,
    };
    assert_eq!(
        session.submit(&wrong).await,
        Err(SubmitError::Encode(expected))
    );
    let right = message("b");
    let (answer, ()) = tokio::join!(session.submit(&right), async {
        let (sequence, text) = peer.take_message().await;
        assert_eq!(text, "b");
        peer.answer(sequence, 1).await;
    });
    answer.expect("answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_share_a_session() {
    const TASKS: usize = 50;
    const EACH: usize = 100;
    let options = SessionOptions {
        window: 20,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let script = tokio::spawn(async move {
        for _ in 0..TASKS * EACH {
            let (sequence, text) = peer.take_message().await;
            peer.answer(sequence, text).await;
        }
        peer
    });
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let session = session.clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    let text = format!("{task}-{n}");
                    let answer = session.submit(&message(&text)).await.expect("answered");
                    assert_eq!(answer.message_id.as_ref(), text.as_bytes());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("all answers are right");
    }
    let _peer = script.await.expect("the script");
    until("all are answered", || session.in_flight() == 0).await;
}
