//! The session: one task for each slot of the window, each sending one message after the other.

use super::{Options, Smsc, WARM_UP, WINDOW, message, rate};
use ::smpp::{Incoming, Session, SessionOptions, ShortMessage, Status};
use anyhow::{Result, ensure};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tokio::runtime::Builder;
use tokio::time::sleep;

pub(crate) struct IgnoreIncoming;

#[async_trait]
impl Incoming for IgnoreIncoming {
    async fn deliver(&self, _message: Box<ShortMessage>) -> Status {
        Status::OK
    }
}

#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) answered: AtomicU64,
    pub(crate) stop: AtomicBool,
}

pub(super) fn measure(options: &Options, workers: usize) -> Result<u64> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?;
    let smsc = Smsc::start()?;
    let address = smsc.addr().to_string();
    let (found, answered) = runtime.block_on(async {
        let settings = SessionOptions {
            window: WINDOW,
            ..SessionOptions::default()
        };
        let session = Session::connect(&address, settings, Arc::new(IgnoreIncoming)).await?;
        let progress = Arc::new(Progress::default());
        let tasks: Vec<_> = (0..WINDOW)
            .map(|_| tokio::spawn(send(session.clone(), message(), Arc::clone(&progress))))
            .collect();
        sleep(WARM_UP).await;
        let (start, before) = (Instant::now(), progress.answered.load(Ordering::Relaxed));
        sleep(options.measured()).await;
        let sent = progress.answered.load(Ordering::Relaxed) - before;
        let found = rate(sent, start.elapsed());
        progress.stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await??;
        }
        session.unbind().await;
        anyhow::Ok((found, progress.answered.load(Ordering::Relaxed)))
    })?;
    let received = smsc.submit_count()?;
    ensure!(
        received == answered,
        "the SMSC received {received} messages, but {answered} were answered"
    );
    Ok(found)
}

/// Sends a message again and again until it is stopped.
pub(crate) async fn send(
    session: Session,
    message: ShortMessage,
    progress: Arc<Progress>,
) -> Result<()> {
    while !progress.stop.load(Ordering::Relaxed) {
        let answer = session.submit(&message).await?;
        ensure!(answer.status.is_ok(), "refused: {}", answer.status);
        progress.answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
