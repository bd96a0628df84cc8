//! Whether a node lives. What it does outside itself waits for that: a dead one does nothing more, a stopped one goes on
//! where it was.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Life(Mutex<State>, Notify);

#[derive(Debug, Default)]
struct State {
    is_dead: bool,
    stopped_until: Option<Instant>,
}

impl Life {
    pub(super) fn begin() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn kill(&self) {
        self.0.lock().expect("no holder panics").is_dead = true;
        self.1.notify_one();
    }

    /// Returns when the node has died; only one may wait for that.
    pub(super) async fn death(&self) {
        self.1.notified().await;
    }

    pub(super) fn stop_until(&self, time: Instant) {
        self.0.lock().expect("no holder panics").stopped_until = Some(time);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.lock().expect("no holder panics").is_dead
    }

    /// Returns while the node runs; a dead one never gets an answer.
    pub(super) async fn goes_on(&self) {
        loop {
            let until = {
                let state = self.0.lock().expect("no holder panics");
                if state.is_dead {
                    None
                } else {
                    match state.stopped_until.filter(|until| *until > Instant::now()) {
                        Some(until) => Some(until),
                        None => return,
                    }
                }
            };
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        }
    }
}
