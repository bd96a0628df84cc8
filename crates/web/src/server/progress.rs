//! Ends connections to clients that do not read.

use std::future::Future as _;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A stream whose writes must make progress. The time starts again with each byte that the peer takes.
pub(super) struct Progress<S> {
    stream: S,
    time: Duration,
    /// Runs while a write waits for the peer.
    waiting: Option<Pin<Box<Sleep>>>,
    is_over: bool,
    on_timeout: fn(&S),
}

impl<S> Progress<S> {
    /// Ends writes that make no progress for `time`; `on_timeout` is called once then.
    pub(super) fn new(stream: S, time: Duration, on_timeout: fn(&S)) -> Self {
        Self {
            stream,
            time,
            waiting: None,
            is_over: false,
            on_timeout,
        }
    }

    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let time = self.time;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        ready!(waiting.as_mut().poll(cx));
        self.is_over = true;
        (self.on_timeout)(&self.stream);
        Poll::Ready(Err(timed_out()))
    }
}

fn timed_out() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the peer did not read its answer")
}

impl<S: AsyncRead + Unpin> AsyncRead for Progress<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progress<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_over {
            return Poll::Ready(Err(timed_out()));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_over {
            return Poll::Ready(Err(timed_out()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_over {
            return Poll::Ready(Err(timed_out()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const TIME: Duration = Duration::from_secs(30);
    const BUFFER: usize = 1024;
    const BYTES: usize = 10 * BUFFER;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_disconnected() {
        let (ours, _theirs) = tokio::io::duplex(BUFFER);
        let mut stream = Progress::new(ours, TIME, |_| {});
        let written = stream.write_all(&[0; BYTES]).await;
        let error = written.expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let again = stream.write(b"x").await.expect_err("it stays so");
        assert_eq!(again.kind(), ErrorKind::TimedOut);
        assert!(stream.shutdown().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_slowly_gets_all_of_it() {
        let (ours, mut theirs) = tokio::io::duplex(BUFFER);
        let mut stream = Progress::new(ours, TIME, |_| {});
        let writing = tokio::spawn(async move { stream.write_all(&[0; BYTES]).await });
        let mut bytes = [0; BUFFER / 2];
        for _ in 0..BYTES / bytes.len() {
            tokio::time::sleep(TIME / 2).await; // tidy: the time is paused
            theirs.read_exact(&mut bytes).await.expect("the next bytes");
        }
        let written = writing.await.expect("no panic");
        written.expect("slow, but never at a standstill");
    }
}
