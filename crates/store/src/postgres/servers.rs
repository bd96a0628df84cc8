//! Connects to the first server of a URL that answers in time.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, Error};

use super::tls::Connector;

/// Attempts one server after the other, each for at most this long, including the handshake.
///
/// The library limits only the time to open a socket. A server that hangs accepts connections and never answers, so it
/// would keep every node from the other servers.
#[derive(Debug)]
pub(super) struct FailoverConnector {
    pub(super) each: Duration,
    pub(super) tls: Connector,
}

type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

impl Connect for FailoverConnector {
    fn connect(&self, config: &Config) -> Connecting<'_> {
        let mut servers = split(config);
        // The pool limits the total time, so the last server needs no limit.
        let last = servers.pop().unwrap_or_else(|| config.clone());
        Box::pin(async move {
            for server in servers {
                if let Ok(Ok(connected)) = timeout(self.each, open(server, &self.tls)).await {
                    return Ok(connected);
                }
            }
            open(last, &self.tls).await
        })
    }
}

async fn open(mut server: Config, tls: &Connector) -> Result<(Client, JoinHandle<()>), Error> {
    // Traffic on a local socket cannot be intercepted, and the server offers no TLS there.
    let is_local = |host: &Host| matches!(host, Host::Unix(_));
    if server.get_hostaddrs().is_empty() && server.get_hosts().iter().all(is_local) {
        server.ssl_mode(SslMode::Disable);
    }
    let (client, connection) = server.connect(tls.clone()).await?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the database ended");
        }
    });
    Ok((client, task))
}

/// One configuration for each server that a URL names.
fn split(config: &Config) -> Vec<Config> {
    // Addresses in addition to names are matched with them by position; the library does that.
    if config.get_hosts().len() < 2 || !config.get_hostaddrs().is_empty() {
        return Vec::new();
    }
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate();
    hosts
        .map(|(index, host)| {
            let port = ports.get(index).or(ports.first()).copied();
            only(config, host, port)
        })
        .collect()
}

/// The same configuration with one server.
fn only(config: &Config, host: &Host, port: Option<u16>) -> Config {
    let mut one = Config::new();
    match host {
        Host::Tcp(name) => one.host(name),
        Host::Unix(path) => one.host_path(path),
    };
    port.map(|port| one.port(port));
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config
        .get_application_name()
        .map(|name| one.application_name(name));
    config
        .get_connect_timeout()
        .map(|limit| one.connect_timeout(*limit));
    config
        .get_tcp_user_timeout()
        .map(|limit| one.tcp_user_timeout(*limit));
    config
        .get_keepalives_interval()
        .map(|interval| one.keepalives_interval(interval));
    config
        .get_keepalives_retries()
        .map(|retries| one.keepalives_retries(retries));
    one.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_of_a_url_has_all_its_settings() {
        let settings = "/x?target_session_attrs=read-write&application_name=n&options=-c%20jit%3Doff\
            &connect_timeout=3&tcp_user_timeout=4&keepalives_idle=5&keepalives_interval=6\
            &keepalives_retries=7&channel_binding=disable&sslmode=disable";
        let parse = |servers: &str| -> Config {
            let url = format!("postgres://u:p@{servers}{settings}");
            url.parse().expect("a URL")
        };
        let both = split(&parse("a:1,b:2"));
        assert_eq!(both, [parse("a:1"), parse("b:2")]);
        assert_eq!(split(&parse("a:1")), []);
    }
}
