//! What the product does, one file a use case.
//!
//! What belongs here: accepting messages ([`submit`]), reading them back and cancelling them ([`messages`]), deciding
//! who may call ([`gate`]), keeping accounts, tokens and sign-ins ([`accounts`], [`sign_in`]), and the machinery that
//! several of these share ([`batcher`], [`id_blocks`], [`throttle`]).
//!
//! What never enters: HTTP and SQL. The doors in `web` call these use cases; the databases stand behind the port
//! traits of `domain`.

pub mod accounts;
pub mod batcher;
mod entropy;
pub mod gate;
pub mod id_blocks;
pub mod messages;
pub mod sign_in;
pub mod submit;
pub mod throttle;

use std::sync::Arc;

use domain::Clock;
use domain::ports::Store;

pub use accounts::Accounts;
pub use gate::Gate;
pub use messages::Messages;
pub use sign_in::SignIn;
pub use submit::Submit;

/// How much the use cases may hold in memory, and how they write.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Submissions that may wait for the database at once; beyond, callers are told to come back.
    pub accept_queue: usize,
    /// The most submissions that one transaction stores.
    pub accept_batch: usize,
    /// Transactions that may be under way at once.
    pub accept_writers: usize,
}

/// The use cases, built once and shared by every door.
pub struct Engine {
    /// Who may call.
    pub gate: Arc<Gate>,
    /// Sending.
    pub submit: Submit,
    /// Reading back and cancelling.
    pub messages: Messages,
    /// Accounts and tokens.
    pub accounts: Accounts,
    /// The dashboard's one-time links and sessions.
    pub sign_in: SignIn,
}

impl Engine {
    /// Builds the use cases on a store. Must be called inside a tokio runtime.
    pub fn start(store: Arc<dyn Store>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self {
            gate: Gate::start(store.clone(), clock.clone()),
            submit: Submit::start(store.clone(), clock.clone(), settings),
            messages: Messages::new(store.clone(), clock.clone()),
            accounts: Accounts::new(store.clone(), clock.clone()),
            sign_in: SignIn::new(store, clock),
        }
    }

    /// Stops taking work and returns once everything taken is stored and answered.
    pub async fn stop(&self) {
        self.submit.stop().await;
        self.gate.stop();
    }
}
