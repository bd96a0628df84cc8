//! The ways out, built from the configuration.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use domain::Clock;
use domain::ports::{CallbackSender, UrlGuard};
use outbound::callback::TRY_TIMEOUT;
use outbound::{
    CallbackClient, CallbackOptions, DialerOptions, Guard, Simulator, SystemResolver, UrlCheck,
};

use crate::config::Config;

/// Names that are looked up at once for callers.
const CALLERS_LOOKUPS: usize = 32;
/// Names that are looked up at once for deliveries: more, for a name server that hangs must not hold up other hosts.
const DELIVERY_LOOKUPS: usize = 128;

/// The simulated network.
pub(crate) fn simulator(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<Simulator>> {
    let settings = &config.simulator;
    let delay = Duration::from_millis(settings.delay_ms);
    Simulator::new(clock, delay, settings.window, settings.journal.as_deref())
        .context("simulator.journal cannot be opened")
}

/// Decides which addresses callers may give.
pub(crate) fn url_guard(config: &Config) -> Arc<dyn UrlGuard> {
    Arc::new(UrlCheck::new(
        guard(config),
        Arc::new(SystemResolver::new(CALLERS_LOOKUPS)),
    ))
}

/// Delivers reports.
pub(crate) fn callback_client(config: &Config) -> Arc<dyn CallbackSender> {
    Arc::new(CallbackClient::new(CallbackOptions {
        dialer: DialerOptions {
            guard: guard(config),
            resolver: Arc::new(SystemResolver::new(DELIVERY_LOOKUPS)),
            source: config.callbacks.source.clone(),
            tls: outbound::dial::public_roots(),
        },
        try_timeout: TRY_TIMEOUT,
    }))
}

fn guard(config: &Config) -> Guard {
    Guard::new(config.callback_allow())
}
