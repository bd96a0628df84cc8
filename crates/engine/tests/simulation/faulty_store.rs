//! The store as one node sees it: calls may be slow, fail, lose their answer, or end with a panic or the node's death.

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use domain::ports::StoreError;
use memory_store::{CallKind, Calls, Model};
use tokio::time::Instant;

use super::environment::Environment;
use super::liveness::Liveness;

/// How long a call may take before its caller gives up.
const DEADLINE: Duration = Duration::from_secs(15);

/// Which further faults a call may have; every call may be refused or lose its answer.
#[derive(Clone, Copy)]
struct PossibleFaults {
    /// The store may execute a call up to this long after its caller gave up.
    max_delay_ms: u64,
    /// Whether the caller may panic after the store has executed the call.
    can_panic: bool,
}

impl PossibleFaults {
    fn from_kind(kind: CallKind) -> Self {
        Self {
            // A commit that assigns messages to a node may hang as long as a standby is unavailable.
            max_delay_ms: match kind {
                CallKind::Plain | CallKind::MayPanic => 12_000,
                CallKind::AssignsMessages => 45_000,
            },
            can_panic: kind != CallKind::Plain,
        }
    }
}

/// What happens to a call.
#[derive(Clone, Copy)]
enum CallOutcome {
    Done,
    Refused,
    Unanswered,
    Late(Duration),
    Panics,
    DiesBefore,
    DiesAfter,
}

/// One node's connection to the store.
pub(super) struct FaultyCalls {
    env: Arc<Environment>,
    liveness: Arc<Liveness>,
}

impl FaultyCalls {
    pub(super) fn new(env: Arc<Environment>, liveness: Arc<Liveness>) -> Self {
        Self { env, liveness }
    }

    fn choose_outcome(&self, possible: PossibleFaults) -> CallOutcome {
        let mut state = self.env.state();
        let fault_rates = state.fault_rates;
        let rng = &mut state.rng;
        if rng.per_mille(fault_rates.refused) {
            CallOutcome::Refused
        } else if rng.per_mille(fault_rates.unanswered) {
            CallOutcome::Unanswered
        } else if rng.per_mille(fault_rates.late) {
            CallOutcome::Late(rng.between(10, possible.max_delay_ms))
        } else if possible.can_panic && rng.per_mille(fault_rates.panics) {
            CallOutcome::Panics
        } else if rng.per_mille(fault_rates.dies) {
            [CallOutcome::DiesBefore, CallOutcome::DiesAfter][usize::from(rng.per_mille(500))]
        } else {
            CallOutcome::Done
        }
    }
}

impl Calls for FaultyCalls {
    const ACCEPT_TRANSACTIONS: usize = 2;

    async fn call<T: Send + 'static>(
        &self,
        kind: CallKind,
        what: &'static str,
        work: impl FnOnce(&mut Model, Timestamp) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.liveness.wait_until_running().await;
        tokio::time::sleep(self.env.pause(0, 8)).await;
        let away_until = self.env.state().store_down_until;
        if away_until > Instant::now() {
            let give_up = away_until.min(Instant::now() + DEADLINE);
            tokio::time::sleep_until(give_up).await;
            self.liveness.wait_until_running().await;
            return Err(unavailable(what));
        }
        self.liveness.wait_until_running().await;
        let outcome = self.choose_outcome(PossibleFaults::from_kind(kind));
        let env = self.env.clone();
        let act = move || {
            let now = env.now();
            work(&mut env.state().model, now)
        };
        let result = match outcome {
            CallOutcome::Done => Ok(act()),
            CallOutcome::Refused => Err(unavailable(what)),
            CallOutcome::Unanswered => {
                self.env
                    .log(format_args!("{what}: done, the answer is lost"));
                act();
                Err(unavailable(what))
            }
            CallOutcome::Late(after) => {
                self.env.log(format_args!(
                    "{what}: done {after:?} later, the answer is lost"
                ));
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    act();
                });
                Err(unavailable(what))
            }
            CallOutcome::Panics => {
                self.env
                    .log(format_args!("{what}: done, the caller panics"));
                act();
                // Skips the panic hook, which would print a message.
                std::panic::resume_unwind(Box::new("on purpose"))
            }
            CallOutcome::DiesBefore => {
                self.env
                    .log(format_args!("{what}: the node dies before it"));
                self.liveness.kill();
                Err(unavailable(what))
            }
            CallOutcome::DiesAfter => {
                self.env.log(format_args!("{what}: the node dies after it"));
                act();
                self.liveness.kill();
                Err(unavailable(what))
            }
        };
        tokio::time::sleep(self.env.pause(0, 4)).await;
        self.liveness.wait_until_running().await;
        result
    }
}

fn unavailable(what: &str) -> StoreError {
    StoreError::Unavailable {
        source: what.to_owned().into(),
    }
}
