//! Whether a node runs, is paused or is dead. Every call to the outside waits for this: a dead node never continues,
//! and a paused one continues where it was.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Liveness(Mutex<State>, Notify);

#[derive(Debug, Default)]
struct State {
    is_dead: bool,
    paused_until: Option<Instant>,
}

impl Liveness {
    pub(super) fn start() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn kill(&self) {
        self.0.lock().expect("no holder panics").is_dead = true;
        self.1.notify_one();
    }

    /// Returns when the node has died. Only one task may wait.
    pub(super) async fn wait_for_death(&self) {
        self.1.notified().await;
    }

    pub(super) fn pause_until(&self, time: Instant) {
        self.0.lock().expect("no holder panics").paused_until = Some(time);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.0.lock().expect("no holder panics").is_dead
    }

    /// Returns at once while the node runs and after a pause; never for a dead node.
    pub(super) async fn wait_until_running(&self) {
        loop {
            let until = {
                let state = self.0.lock().expect("no holder panics");
                if state.is_dead {
                    None
                } else {
                    match state.paused_until.filter(|until| *until > Instant::now()) {
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
