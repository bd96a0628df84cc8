//! The connections, and the limits on how long anything may take.

use std::time::{Duration, Instant};

use deadpool_postgres::{
    BuildError, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, QueueMode,
    RecyclingMethod, Runtime,
};
use domain::ports::{Cause, ConnectionUse};
use tokio_postgres::Config;

use super::servers::FailoverConnector;
use super::settings::{self, Settings};
use super::tls::Connector;
use crate::url::PostgresUrl;

/// How long a caller waits for a connection, free or new.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a starting node waits for a slow server.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// During this time after the start, waiting for a connection may take longer than [`ACQUIRE_TIMEOUT`].
pub(super) const STARTUP_PERIOD: Duration = Duration::from_mins(1);
/// How long sent data may stay unacknowledged before the connection counts as dead.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a heartbeat waits for a new connection. It is retried at once, so it never waits for a server that is down.
const HEARTBEAT_CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A pool that waits longer for a connection during the first minute.
///
/// A starting node asks a possibly slow server for many things at once. If it gave up, it would only be started again.
#[derive(Debug)]
pub(super) struct Connections {
    pool: Pool,
    retry_until: Instant,
}

impl Connections {
    /// Wraps a pool. For `retry_for` from now on, a timeout while waiting for a connection is retried.
    pub(super) fn new(pool: Pool, retry_for: Duration) -> Self {
        Self {
            pool,
            retry_until: Instant::now() + retry_for,
        }
    }

    pub(super) fn usage(&self) -> ConnectionUse {
        let status = self.pool.status();
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        ConnectionUse {
            most: number(status.max_size),
            busy: number(status.size.saturating_sub(status.available)),
            waiting: number(status.waiting),
        }
    }

    pub(super) async fn get(&self) -> Result<Object, PoolError> {
        loop {
            match self.pool.get().await {
                Err(PoolError::Timeout(_)) if Instant::now() < self.retry_until => {}
                outcome => return outcome,
            }
        }
    }
}

/// The connection for heartbeats, not open yet: other work cannot delay heartbeats. It is replaced when it is closed.
pub(super) fn heartbeat(url: &PostgresUrl, settings: Settings) -> Result<Pool, BuildError> {
    let mut limited = with_limits(&url.config, settings);
    let hosts = u32::try_from(limited.get_hosts().len()).unwrap_or(u32::MAX);
    let each = HEARTBEAT_CONNECT_TIMEOUT / hosts.max(1);
    limited.connect_timeout(each);
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let servers = FailoverConnector {
        each,
        tls: Connector(url.tls.clone()),
    };
    Pool::builder(Manager::from_connect(limited, servers, recycling))
        .max_size(1)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(HEARTBEAT_CONNECT_TIMEOUT))
        .create_timeout(Some(HEARTBEAT_CONNECT_TIMEOUT))
        .recycle_timeout(Some(HEARTBEAT_CONNECT_TIMEOUT))
        .build()
}

/// How old a connection may become. Each day brings new statements, and the server keeps the plans of old ones as long
/// as the connection is open.
const MAX_AGE: Duration = Duration::from_hours(1);

/// A pool with a maximum size and no open connections.
///
/// A connection is handed out without a test, which would cost a round trip for each statement. Closed connections are
/// replaced, so a restarted server is found again.
pub(crate) fn build(
    url: &PostgresUrl,
    connections: usize,
    settings: Settings,
) -> Result<Pool, BuildError> {
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let limited = with_limits(&url.config, settings);
    let servers = FailoverConnector {
        each: timeout_per_server(&url.config),
        tls: Connector(url.tls.clone()),
    };
    let manager = Manager::from_connect(limited, servers, recycling);
    let pool = Pool::builder(manager)
        .max_size(connections.max(1))
        // The connection that was used last has cached plans and pages; the others are for busy times.
        .queue_mode(QueueMode::Lifo)
        .pre_recycle(Hook::sync_fn(|_, metrics| {
            if metrics.age() < MAX_AGE {
                return Ok(());
            }
            Err(HookError::message("this connection is old"))
        }))
        .runtime(Runtime::Tokio1);
    pool.wait_timeout(Some(ACQUIRE_TIMEOUT))
        .create_timeout(Some(ACQUIRE_TIMEOUT))
        .recycle_timeout(Some(ACQUIRE_TIMEOUT))
        .build()
}

/// Opens a first connection to check the server. A slow server is waited for; a missing one fails at once.
pub(crate) async fn connect(pool: &Pool) -> Result<Object, Cause> {
    let give_up = Instant::now() + START_TIMEOUT;
    loop {
        match pool.get().await {
            Ok(client) => return Ok(client),
            Err(PoolError::Timeout(_)) if Instant::now() < give_up => {
                tracing::warn!("the database does not answer yet; trying again");
            }
            // The message of the pool repeats the message of its cause.
            Err(PoolError::Backend(error)) => return Err(Box::new(error)),
            Err(error) => return Err(Box::new(error)),
        }
    }
}

/// Adds the settings after the options of the URL, so that they take precedence.
fn with_limits(config: &Config, settings: Settings) -> Config {
    let mut config = config.clone();
    let given = config.get_options().unwrap_or_default();
    let options = format!("{given}{}", settings::options(settings));
    config.options(options);
    config
        .connect_timeout(timeout_per_server(&config))
        .tcp_user_timeout(NETWORK_TIMEOUT)
        .keepalives_idle(NETWORK_TIMEOUT);
    if config.get_application_name().is_none() {
        config.application_name("switchboard");
    }
    config
}

/// With several servers in the URL, each gets an equal share of the time, because the first ones may be down.
fn timeout_per_server(config: &Config) -> Duration {
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
    ACQUIRE_TIMEOUT / hosts.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_of_a_url_is_tried_before_the_timeout() {
        for (url, servers) in [
            ("postgres://u@a/x", 1),
            ("postgres://u@a:1,b:2/x?target_session_attrs=read-write", 2),
            ("postgres://u@a,b,c/x", 3),
        ] {
            let config = with_limits(&url.parse().expect(url), settings::SERVICE);
            let each = config.get_connect_timeout().expect("a limit");
            assert!(*each * servers <= ACQUIRE_TIMEOUT, "{url}: {each:?}");
        }
    }
}
