//! An SMSC that does not read.

use bytes::BytesMut;
use futures_util::future::join_all;
use smpp::{Body, Frame, Pdu, SessionOptions, SubmitError, encode, tag};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::peer::{bound, in_time, message, options};

/// More messages of the maximum size than the sockets of a connection can buffer.
const TOO_MUCH: usize = 500;

#[tokio::test]
async fn unsent_messages_are_distinguished_from_sent_ones() {
    let options = SessionOptions {
        window: TOO_MUCH + 5,
        ..options()
    };
    let (session, mut peer) = bound(options).await;
    let mut long = message("");
    long.tlvs.push(tag::MESSAGE_PAYLOAD, vec![7; 60_000]);
    let short = message("behind");
    let first = join_all((0..TOO_MUCH).map(|_| session.submit(&long)));
    let script = async {
        // The first message has arrived, so the buffer with all of them is being written.
        peer.take_message().await;
        let second = join_all((0..5).map(|_| session.submit(&short)));
        let death = async {
            while session.in_flight() < TOO_MUCH + 5 {
                tokio::task::yield_now().await;
            }
            drop(peer);
        };
        tokio::join!(second, death).0
    };
    let (first, second) = in_time(async { tokio::join!(first, script) }).await;
    let all_are = |answers: &[Result<_, _>], error: &SubmitError| {
        answers
            .iter()
            .all(|answer| answer.as_ref().err() == Some(error))
    };
    assert!(all_are(&first, &SubmitError::Unknown), "{first:?}");
    assert!(all_are(&second, &SubmitError::NotSent), "{second:?}");
}

#[tokio::test]
async fn a_peer_that_does_not_read_waits_and_gets_all_answers() {
    const QUESTIONS: u32 = 400_000;
    let (_session, peer) = bound(options()).await;
    let (mut reader, mut writer) = tokio::io::split(peer.into_stream());
    let ask = tokio::spawn(async move {
        let mut octets = BytesMut::new();
        for sequence in 1..=QUESTIONS {
            encode(&Pdu::new(sequence, Body::EnquireLink), &mut octets).expect("valid");
        }
        // Far more than is accepted while the responses are not read.
        writer.write_all(&octets).await.expect("written");
        writer
    });
    // Enough time for the responses to fill all buffers in between.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let mut decoder = smpp::Decoder::default();
    let mut buffer = BytesMut::new();
    let mut answered = 0;
    while answered < QUESTIONS {
        assert_ne!(
            in_time(reader.read_buf(&mut buffer)).await.expect("read"),
            0
        );
        while let Some(frame) = decoder.next(&mut buffer).expect("a length") {
            answered += 1;
            let expected = Pdu::new(answered, Body::EnquireLinkResp);
            assert_eq!(frame, Frame::Ok(expected));
        }
    }
    in_time(ask).await.expect("all was written");
}
