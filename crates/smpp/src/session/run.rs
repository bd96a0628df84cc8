//! The life of a session: its loops, and what is done once one of them ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{Instrument as _, debug};

use super::keep::keep;
use super::link::{Phase, Shared};
use super::read::Reading;
use super::write::write;
use super::{Ended, Incoming};

/// How long the last octets may take to leave.
const LAST_WRITE: Duration = Duration::from_secs(1);

pub(super) fn spawn<R, W>(
    shared: Arc<Shared>,
    reader: R,
    writer: W,
    input: BytesMut,
    incoming: Arc<dyn Incoming>,
) -> watch::Receiver<Option<Ended>>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (tell, ended) = watch::channel(None);
    let life = async move {
        let finish = Finish(Arc::clone(&shared));
        let why = live(&shared, reader, writer, input, incoming).await;
        debug!(%why, "a session ended");
        drop(finish);
        tell.send_replace(Some(why));
    };
    tokio::spawn(life.in_current_span());
    ended
}

/// Nobody waits for ever, also when the runtime drops the session's tasks.
struct Finish(Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish();
    }
}

async fn live<R, W>(
    shared: &Arc<Shared>,
    reader: R,
    writer: W,
    input: BytesMut,
    incoming: Arc<dyn Incoming>,
) -> Ended
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut writing = tokio::spawn({
        let shared = Arc::clone(shared);
        async move { write(&shared, writer).await }
    });
    let reading = Reading::new(Arc::clone(shared), incoming).run(reader, input);
    let mut written = None;
    let why = tokio::select! {
        biased;
        why = reading => why,
        why = keep(shared) => why,
        result = &mut writing => {
            written = Some(());
            match result {
                Ok(Err(error)) => Ended::Io(error.to_string()),
                _ => Ended::Stopped,
            }
        }
    };
    let why = in_context(why, shared);
    shared.finish();
    if written.is_none() && timeout(LAST_WRITE, &mut writing).await.is_err() {
        writing.abort();
    }
    why
}

/// A connection that closes while unbinding does what was wanted.
fn in_context(why: Ended, shared: &Shared) -> Ended {
    if !matches!(why, Ended::ClosedByPeer | Ended::Io(_)) {
        return why;
    }
    match &shared.lock().phase {
        Phase::Unbinding {
            why: wanted,
            unbind: Some(_),
            ..
        } => wanted.clone(),
        Phase::PeerUnbinding { answered: true, .. } => Ended::UnboundByPeer,
        _ => why,
    }
}
