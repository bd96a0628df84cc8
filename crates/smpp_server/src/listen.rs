//! Listening: how many connections there are, and for how long.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::identity::connections::Connected;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;

use crate::activity::Peer;
use crate::server::SmppServer;
use crate::session;

/// A connection must bind within this time, including its TLS handshake.
const BIND_TIME: Duration = Duration::from_secs(30);
/// Pause after a failed accept, for example when file handles run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the end of the last sessions is looked for.
const END_CHECK: Duration = Duration::from_millis(20);

impl SmppServer {
    /// Accepts connections until the service leaves or stops; returns once their sessions have ended.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        let listener = Arc::new(listener);
        let server = self.clone();
        supervise::run("smpp-accept", move || {
            server.clone().accept(listener.clone(), tls.clone())
        })
        .await;
        let deadline = Instant::now() + self.settings.grace;
        while self.connections.open() > 0 {
            if Instant::now() >= deadline {
                tracing::warn!("some SMPP sessions did not end in time and were closed");
                return;
            }
            tokio::time::sleep(END_CHECK).await;
        }
    }

    async fn accept(self: Arc<Self>, listener: Arc<TcpListener>, tls: Option<TlsAcceptor>) {
        let mut ending = self.ending.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = ending.begun() => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let peer = peer.ip().to_canonical();
                    let Some(connected) = self.connections.try_connect(peer) else {
                        self.refuse(peer);
                        continue;
                    };
                    self.clone().start(stream, peer, tls.clone(), connected);
                }
                Err(error) => {
                    tracing::warn!(%error, "an SMPP connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn refuse(&self, peer: IpAddr) {
        metrics::counter!("switchboard_smpp_connections_refused_total").increment(1);
        let elapsed = self.started.elapsed();
        if !self.refused.count((), 1, elapsed).is_exceeded {
            tracing::warn!(
                address = %peer,
                "too many SMPP connections: limits.connections_per_address or smpp_server.connections; proxies belong in auth.trusted_proxies"
            );
        }
    }

    fn start(
        self: Arc<Self>,
        stream: TcpStream,
        peer: IpAddr,
        tls: Option<TlsAcceptor>,
        connected: Connected,
    ) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        tokio::spawn(async move {
            let bind_until = Instant::now() + BIND_TIME;
            match tls {
                None => {
                    let peer = Peer {
                        address: peer,
                        is_tls: false,
                    };
                    self.run(stream, peer, bind_until).await;
                }
                Some(tls) => match timeout_at(bind_until, tls.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let peer = Peer {
                            address: peer,
                            is_tls: true,
                        };
                        self.run(stream, peer, bind_until).await;
                    }
                    Ok(Err(error)) => {
                        tracing::debug!(%error, address = %peer, "a TLS handshake of SMPP failed");
                    }
                    Err(_) => {
                        tracing::debug!(address = %peer, "a TLS handshake of SMPP took too long");
                    }
                },
            }
            drop(connected);
        });
    }

    async fn run<S>(self: Arc<Self>, stream: S, peer: Peer, bind_until: Instant)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let why = session::serve(self, stream, peer, bind_until).await;
        tracing::debug!(address = %peer.address, why, "an SMPP connection ended");
    }
}
