//! Runs the tasks of a session and cleans up when one of them ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{Instrument as _, debug};

use super::link::{Phase, Shared};
use super::read::PduReader;
use super::timers::run_timers;
use super::write::write;
use super::{EndReason, Incoming};

/// How long the last write may take.
const LAST_WRITE: Duration = Duration::from_secs(1);

pub(super) fn spawn<R, W>(
    shared: Arc<Shared>,
    reader: R,
    writer: W,
    input: BytesMut,
    incoming: Arc<dyn Incoming>,
) -> watch::Receiver<Option<EndReason>>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (ended_sender, ended) = watch::channel(None);
    let session = async move {
        let finish = FinishOnDrop(Arc::clone(&shared));
        let why = run_tasks(&shared, reader, writer, input, incoming).await;
        debug!(%why, "a session ended");
        drop(finish);
        ended_sender.send_replace(Some(why));
    };
    tokio::spawn(session.in_current_span());
    ended
}

/// Ends every wait for an answer, even if the runtime drops the session's tasks.
struct FinishOnDrop(Arc<Shared>);

impl Drop for FinishOnDrop {
    fn drop(&mut self) {
        self.0.finish();
    }
}

async fn run_tasks<R, W>(
    shared: &Arc<Shared>,
    reader: R,
    writer: W,
    input: BytesMut,
    incoming: Arc<dyn Incoming>,
) -> EndReason
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut writing = tokio::spawn({
        let shared = Arc::clone(shared);
        async move { write(&shared, writer).await }
    });
    let reading = PduReader::new(Arc::clone(shared), incoming).run(reader, input);
    let mut written = None;
    let why = tokio::select! {
        biased;
        why = reading => why,
        why = run_timers(shared) => why,
        result = &mut writing => {
            written = Some(());
            match result {
                Ok(Err(error)) => EndReason::Io(error.to_string()),
                _ => EndReason::Stopped,
            }
        }
    };
    let why = end_reason(why, shared);
    shared.finish();
    if written.is_none() && timeout(LAST_WRITE, &mut writing).await.is_err() {
        writing.abort();
    }
    why
}

/// A connection that closes during an unbind is the expected end.
fn end_reason(why: EndReason, shared: &Shared) -> EndReason {
    if !matches!(why, EndReason::ClosedByPeer | EndReason::Io(_)) {
        return why;
    }
    match &shared.lock().phase {
        Phase::Unbinding {
            why: wanted,
            unbind: Some(_),
            ..
        } => wanted.clone(),
        Phase::PeerUnbinding { answered: true, .. } => EndReason::UnboundByPeer,
        _ => why,
    }
}
