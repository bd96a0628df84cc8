//! The session: as many tasks as the window has room, each sending one message after the other.

use super::{Options, Smsc, WARM_UP, WINDOW, message, rate};
use ::smpp::{Incoming, Session, SessionOptions, ShortMessage, Status};
use anyhow::{Result, ensure};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tokio::runtime::Builder;
use tokio::time::sleep;

struct Nothing;

#[async_trait]
impl Incoming for Nothing {
    async fn deliver(&self, _message: Box<ShortMessage>) -> Status {
        Status::OK
    }
}

#[derive(Default)]
struct Count {
    answered: AtomicU64,
    enough: AtomicBool,
}

pub(super) fn measure(options: &Options, workers: usize) -> Result<u64> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?;
    let smsc = Smsc::start()?;
    let address = smsc.addr().to_string();
    let (found, answered) = runtime.block_on(async {
        let wanted = SessionOptions {
            window: WINDOW,
            ..SessionOptions::default()
        };
        // The tasks below own it: this thread only looks on.
        let session = Session::connect(&address, wanted, Arc::new(Nothing)).await?;
        let count = Arc::new(Count::default());
        let tasks: Vec<_> = (0..WINDOW)
            .map(|_| tokio::spawn(send(session.clone(), Arc::clone(&count))))
            .collect();
        sleep(WARM_UP).await;
        let (start, before) = (Instant::now(), count.answered.load(Ordering::Relaxed));
        sleep(options.measured()).await;
        let sent = count.answered.load(Ordering::Relaxed) - before;
        let found = rate(sent, start.elapsed());
        count.enough.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await??;
        }
        session.unbind().await;
        anyhow::Ok((found, count.answered.load(Ordering::Relaxed)))
    })?;
    let taken = smsc.taken()?;
    ensure!(
        taken == answered,
        "the SMSC took {taken} messages, and {answered} were answered"
    );
    Ok(found)
}

async fn send(session: Session, count: Arc<Count>) -> Result<()> {
    let message = message();
    while !count.enough.load(Ordering::Relaxed) {
        let answer = session.submit(&message).await?;
        ensure!(answer.status.is_ok(), "refused: {}", answer.status);
        count.answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
