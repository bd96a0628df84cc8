//! Connects to receivers: name lookup, guard, socket, TLS.
//!
//! The addresses of a name are checked and then connected to directly, without a second lookup. So a name that changes
//! between the check and the connection (DNS rebinding) gains nothing. Through a proxy that does not hold: the proxy
//! looks the name up itself, so what it may reach is for its own rules.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::ClientConfig;
pub use rustls::ClientConfig as TlsConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::guard::{Guard, is_localhost};
use crate::resolve::Resolve;

mod connection;
mod problem;
mod proxy;
mod tls;

pub use connection::Connection;
pub use problem::{DialError, DialProblem};
pub use proxy::HttpProxy;
pub(crate) use tls::certificates;
pub use tls::{public_roots, public_roots_and};

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long to wait for one address to be ready, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// How many addresses of a name are tried, in the resolver's order.
const MAX_ADDRESSES: usize = 4;

pub struct DialerOptions {
    /// Which addresses may be connected to.
    pub guard: Guard,
    pub resolver: Arc<dyn Resolve>,
    /// The local addresses to connect from, the first of each family; empty: the system chooses. If any is set, a
    /// family without one is not used, because the receiver may admit no other address.
    pub source: Vec<IpAddr>,
    /// The trusted certificates; see [`public_roots`].
    pub tls: Arc<ClientConfig>,
    /// All connections go through it.
    pub proxy: Option<HttpProxy>,
}

/// Opens connections.
#[derive(Clone)]
pub struct Dialer(Arc<DialerInner>);

struct DialerInner {
    guard: Guard,
    resolver: Arc<dyn Resolve>,
    source: Vec<IpAddr>,
    tls: TlsConnector,
    proxy: Option<HttpProxy>,
}

/// The host that a URI names.
struct Target<'a> {
    host: &'a str,
    port: u16,
    is_tls: bool,
}

impl Dialer {
    pub fn new(options: DialerOptions) -> Self {
        Self(Arc::new(DialerInner {
            guard: options.guard,
            resolver: options.resolver,
            source: options.source,
            tls: TlsConnector::from(options.tls),
            proxy: options.proxy,
        }))
    }

    pub async fn dial(&self, uri: &Uri) -> Result<Connection, DialError> {
        let target = Target::from_uri(uri).ok_or(DialProblem::NoHost)?;
        if let Some(proxy) = &self.0.proxy {
            let opened = self.0.dial_through(proxy, &target).await;
            return Ok(opened.inspect_err(|problem| proxy.log(problem))?);
        }
        let addresses = self.0.find_addresses(&target).await?;
        let mut last = DialError::from(DialProblem::Unresolved);
        for address in self.0.permitted(&addresses)? {
            let address = SocketAddr::new(address, target.port);
            match self.0.open_in_time(address, &target).await {
                Ok(wire) => return Ok(wire),
                Err(problem) => last = DialError::at(address, problem),
            }
        }
        Err(last)
    }
}

impl<'a> Target<'a> {
    fn from_uri(uri: &'a Uri) -> Option<Self> {
        let is_tls = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let host = uri.host()?;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        Some(Self {
            host: bare.unwrap_or(host),
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            is_tls,
        })
    }
}

impl DialerInner {
    async fn find_addresses(&self, target: &Target<'_>) -> Result<Vec<IpAddr>, DialProblem> {
        if let Ok(address) = target.host.parse() {
            return Ok(vec![address]);
        }
        let lookup = self.resolver.resolve(target.host, target.port);
        match timeout(LOOKUP_TIMEOUT, lookup).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            Ok(_) => Err(DialProblem::Unresolved),
            Err(_) => Err(DialProblem::LookupTimeout(LOOKUP_TIMEOUT)),
        }
    }

    /// The permitted addresses; if there are none, the error of the first.
    fn permitted(&self, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, DialProblem> {
        let mut permitted = Vec::with_capacity(addresses.len().min(MAX_ADDRESSES));
        let mut first_problem = None;
        for address in addresses {
            match self.check(*address) {
                Ok(()) if permitted.len() < MAX_ADDRESSES => permitted.push(*address),
                Ok(()) => break,
                Err(problem) => first_problem = first_problem.or(Some(problem)),
            }
        }
        match first_problem {
            Some(problem) if permitted.is_empty() => Err(problem),
            _ => Ok(permitted),
        }
    }

    fn check(&self, address: IpAddr) -> Result<(), DialProblem> {
        if self.guard.check_address(address).is_err() {
            return Err(DialProblem::Forbidden(address));
        }
        if !self.source.is_empty() && self.source_for(address).is_none() {
            return Err(DialProblem::NoSource(address));
        }
        Ok(())
    }

    fn source_for(&self, target: IpAddr) -> Option<IpAddr> {
        let mut sources = self.source.iter().copied();
        sources.find(|source| source.is_ipv4() == target.is_ipv4())
    }

    async fn open_in_time(
        &self,
        address: SocketAddr,
        target: &Target<'_>,
    ) -> Result<Connection, DialProblem> {
        let opened = timeout(CONNECT_TIMEOUT, self.open(address, target)).await;
        opened.unwrap_or(Err(DialProblem::ConnectTimeout(CONNECT_TIMEOUT)))
    }

    async fn open(
        &self,
        address: SocketAddr,
        target: &Target<'_>,
    ) -> Result<Connection, DialProblem> {
        let stream = self.connect(address).await?;
        self.start(stream, target, Some(address)).await
    }

    /// Starts TLS on a connection to the target, if it needs it.
    async fn start(
        &self,
        stream: TcpStream,
        target: &Target<'_>,
        address: Option<SocketAddr>,
    ) -> Result<Connection, DialProblem> {
        if !target.is_tls {
            return Ok(Connection::plain(stream, address));
        }
        let name = server_name(target.host)?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| DialProblem::from_handshake(&error))?;
        Ok(Connection::tls(stream, address))
    }

    /// Connects through the proxy. It has as much time as a direct connection.
    async fn dial_through(
        &self,
        proxy: &HttpProxy,
        target: &Target<'_>,
    ) -> Result<Connection, DialProblem> {
        self.check_for_proxy(target).await?;
        let addresses = self.find_addresses(&proxy.target()).await;
        let addresses = addresses.map_err(|problem| DialProblem::ProxyDown(problem.to_string()))?;
        let opened = timeout(CONNECT_TIMEOUT, async {
            let mut stream = self.connect_any(&addresses, proxy.target().port).await?;
            proxy.open_tunnel(&mut stream, target).await?;
            self.start(stream, target, None).await
        });
        let late = DialProblem::ConnectTimeout(CONNECT_TIMEOUT);
        opened
            .await
            .unwrap_or(Err(DialProblem::ProxyDown(late.to_string())))
    }

    /// Connects to the first address that accepts a connection.
    async fn connect_any(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, DialProblem> {
        let mut last = DialProblem::Unresolved;
        for address in addresses.iter().take(MAX_ADDRESSES) {
            match self.connect(SocketAddr::new(*address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(problem) => last = problem,
            }
        }
        Err(DialProblem::ProxyDown(last.to_string()))
    }

    /// Checks a host that a proxy will resolve. The proxy may choose any of its addresses, so all must be permitted. A
    /// name that only the proxy can resolve passes.
    async fn check_for_proxy(&self, target: &Target<'_>) -> Result<(), DialProblem> {
        if is_localhost(target.host) {
            let own = self.guard.check_localhost(target.host);
            return own.map_err(|_| DialProblem::Forbidden(Ipv4Addr::LOCALHOST.into()));
        }
        let addresses = self.find_addresses(target).await.unwrap_or_default();
        let forbidden = addresses
            .into_iter()
            .find(|address| self.guard.check_address(*address).is_err());
        forbidden.map_or(Ok(()), |address| Err(DialProblem::Forbidden(address)))
    }

    async fn connect(&self, address: SocketAddr) -> Result<TcpStream, DialProblem> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        };
        let socket = socket.map_err(|error| DialProblem::from_connect(&error))?;
        if let Some(source) = self.source_for(address.ip()) {
            let bound = socket.bind(SocketAddr::new(source, 0));
            bound.map_err(|error| DialProblem::Source(source, error.kind()))?;
        }
        let connected = async {
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(stream)
        };
        connected
            .await
            .map_err(|error| DialProblem::from_connect(&error))
    }
}

/// Certificates name a host without the trailing dot of a fully qualified name.
fn server_name(host: &str) -> Result<ServerName<'static>, DialProblem> {
    let name = host.strip_suffix('.').unwrap_or(host).to_owned();
    ServerName::try_from(name).map_err(|_| DialProblem::NoHost)
}
