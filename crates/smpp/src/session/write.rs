//! Writes the shared buffer to the connection.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::link::Shared;

/// A buffer that grew larger than this in a burst is freed.
const MAX_KEPT_BUFFER: usize = 1 << 20;

/// Writes the whole buffer at once, again and again, until the session has ended; then shuts down the connection.
pub(super) async fn write<W: AsyncWrite + Unpin>(shared: &Shared, mut writer: W) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        // Lets other ready tasks submit first, so that their messages join this write.
        yield_to_ready_tasks().await;
        loop {
            if !shared.take(&mut buffer) {
                return writer.shutdown().await;
            }
            if buffer.is_empty() {
                break;
            }
            writer.write_all(&buffer).await?;
            writer.flush().await?;
            if buffer.capacity() > MAX_KEPT_BUFFER {
                buffer = Vec::new();
            }
            buffer.clear();
        }
        shared.write_needed.notified().await;
    }
}

/// Moves to the end of the run queue. Tokio's `yield_now` also polls the sockets, which costs a system call per write.
async fn yield_to_ready_tasks() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
