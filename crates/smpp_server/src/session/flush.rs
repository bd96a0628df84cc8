//! Writing to a client while its requests go on.

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use smpp::Pdu;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Connection, Why};

/// Requests of a client that are being answered.
pub(super) type Answers = FuturesUnordered<BoxFuture<'static, Pdu>>;

/// Writes what is queued, and collects the answers that become ready meanwhile. Requests are polled all the time: one
/// that is not would keep its database connection, or its place in a queue for one, while the client does not read, and
/// the whole node would wait for it. Cancel-safe.
pub(super) async fn flush_and_answer<S>(
    connection: &mut Connection<S>,
    answers: &mut Answers,
    ready: &mut Vec<Pdu>,
) -> Result<(), Why>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let flush = connection.flush();
    tokio::pin!(flush);
    loop {
        tokio::select! {
            biased;
            flushed = &mut flush => return flushed,
            Some(answer) = answers.next(), if !answers.is_empty() => ready.push(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::FutureExt as _;
    use smpp::{Body, DEFAULT_MAX_PDU, Decoder, Framed};
    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    fn enquire(sequence: u32) -> Pdu {
        Pdu::new(sequence, Body::EnquireLinkResp)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_go_on_while_the_client_does_not_read() {
        // Only the first PDU fits.
        let (stream, client) = tokio::io::duplex(16);
        let mut connection = Connection {
            framed: Framed::new(stream, Decoder::new(DEFAULT_MAX_PDU)),
            write_time: Duration::from_secs(30),
        };
        for sequence in 1..=2 {
            connection.queue(&enquire(sequence)).expect("encodable");
        }
        // The request waits for something that all share.
        let pool = std::sync::Arc::new(Semaphore::new(0));
        let (done, mut is_done) = oneshot::channel();
        let mut answers = Answers::new();
        let shared = pool.clone();
        answers.push(
            async move {
                drop(shared.acquire().await);
                done.send(()).expect("the test waits");
                enquire(3)
            }
            .boxed(),
        );
        // It waits already when the flush begins.
        assert!(answers.next().now_or_never().is_none());
        let mut client = Framed::new(client, Decoder::new(DEFAULT_MAX_PDU));
        let mut ready = Vec::new();
        {
            let flushing = flush_and_answer(&mut connection, &mut answers, &mut ready);
            tokio::pin!(flushing);
            tokio::select! {
                _ = &mut flushing => panic!("the client does not read"),
                () = async {
                    pool.add_permits(1);
                    (&mut is_done).await.expect("the request goes on");
                } => {}
            }
            // Another one gets the permit back.
            assert_eq!(pool.available_permits(), 1);
            let read = async {
                for _ in 0..2 {
                    let frame = client.next().await.expect("readable");
                    assert!(frame.is_some(), "a PDU");
                }
            };
            let (flushed, ()) = tokio::join!(flushing, read);
            flushed.expect("the client reads");
        }
        assert_eq!(ready, [enquire(3)], "to be written next");
        assert_eq!(connection.framed.queued(), 0);

        // A client that never reads is cut off.
        for sequence in 4..=5 {
            connection.queue(&enquire(sequence)).expect("encodable");
        }
        let cut_off = flush_and_answer(&mut connection, &mut answers, &mut ready).await;
        assert_eq!(cut_off, Err("the client did not read"));
    }
}
