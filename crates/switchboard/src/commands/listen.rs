//! `switchboard listen`: a receiver of callbacks, to try them out.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use domain::Clock as _;
use engine::clock::SystemClock;
use http::{Method, Uri};
use tokio::sync::watch;
use web::server::{self, Ending, Limits};

const LIMITS: Limits = Limits {
    connections: 256,
    connections_per_address: 256,
    trusted_proxies: Vec::new(),
    in_flight: 256,
    header_time: Duration::from_secs(30),
    request_time: Duration::from_secs(30),
    write_time: Duration::from_secs(30),
    grace: Duration::from_secs(1),
};

/// Prints every request and answers `OK`, until it is interrupted.
pub(super) async fn run(port: u16) -> anyhow::Result<()> {
    let listener = crate::serve::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    let address = listener.local_addr()?;
    let signal = crate::serve::stop_signal()?;
    println!(
        "listening on http://{address}; callbacks are printed here and answered OK; press Ctrl-C to stop"
    );
    let (stop, stopped) = watch::channel(false);
    let router = Router::new().fallback(receive);
    let ending = Ending {
        leaving: stopped.clone(),
        stopped,
    };
    let serving = tokio::spawn(server::serve(listener, router, None, LIMITS, ending));
    signal.await;
    stop.send_replace(true);
    serving.await?;
    Ok(())
}

async fn receive(method: Method, uri: Uri, body: Bytes) -> &'static str {
    let time = SystemClock.now().strftime("%H:%M:%S").to_string();
    let text = String::from_utf8_lossy(&body);
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{time}  {method} {uri}  {text}").and_then(|()| out.flush()) {
        tracing::warn!(%error, "a callback arrived, but could not be printed");
    }
    "OK"
}
