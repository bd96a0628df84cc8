//! The loop that writes.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::link::Shared;

/// A buffer that grew beyond this in a burst is not kept.
const KEPT: usize = 1 << 20;

/// Writes what there is, all of it at once, until the session has ended; then says so to the other side.
pub(super) async fn write<W: AsyncWrite + Unpin>(shared: &Shared, mut writer: W) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        // Whoever else is ready to submit does so first, and goes into the same write.
        step_back().await;
        loop {
            if !shared.take(&mut buffer) {
                return writer.shutdown().await;
            }
            if buffer.is_empty() {
                break;
            }
            writer.write_all(&buffer).await?;
            writer.flush().await?;
            if buffer.capacity() > KEPT {
                buffer = Vec::new();
            }
            buffer.clear();
        }
        shared.to_write.notified().await;
    }
}

/// Goes to the end of the queue of tasks that are ready. Tokio's `yield_now` waits for a look at the sockets too, which
/// costs a system call for each write.
async fn step_back() {
    let mut stepped = false;
    poll_fn(|context| {
        if stepped {
            return Poll::Ready(());
        }
        stepped = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
