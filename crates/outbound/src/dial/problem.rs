//! Why a receiver could not be reached, in words for people.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustls::CertificateError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialProblem {
    #[error("the URL has no host that can be called")]
    NoHost,
    #[error("the name does not resolve")]
    Unresolved,
    #[error("the name was not resolved within {} s", .0.as_secs())]
    LookupTimeout(Duration),
    /// Refused by the guard. The address is not shown, because callers must not learn our internal names and addresses.
    #[error("the host leads to an address that may not be called")]
    Forbidden(IpAddr),
    /// Source addresses are set, but none of this family.
    #[error("the host cannot be called: no source address of the family of its address is set")]
    NoSource(IpAddr),
    /// The source address does not belong to this machine.
    #[error("the source address that is set cannot be used: {1}")]
    Source(IpAddr, io::ErrorKind),
    #[error("refused the connection")]
    Refused,
    /// The host does not respond, or not with TLS.
    #[error("the connection was not ready within {} s", .0.as_secs())]
    ConnectTimeout(Duration),
    #[error("cannot be reached: {0}")]
    Unreachable(io::ErrorKind),
    #[error("the TLS certificate is not valid: {0}")]
    Certificate(String),
    #[error("TLS failed: {0}")]
    Tls(String),
    #[error("the proxy of this service does not work: {0}")]
    ProxyDown(String),
    #[error("{}", refusal_text(*.0))]
    ProxyRefused(u16),
    #[error("the answer of this service's proxy is not understood")]
    ProxyAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct DialError {
    /// The last address tried, if any.
    pub address: Option<SocketAddr>,
    pub problem: DialProblem,
}

impl DialError {
    pub(super) fn at(address: SocketAddr, problem: DialProblem) -> Self {
        Self {
            address: Some(address),
            problem,
        }
    }
}

impl From<DialProblem> for DialError {
    fn from(problem: DialProblem) -> Self {
        Self {
            address: None,
            problem,
        }
    }
}

impl DialProblem {
    pub(super) fn from_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            kind => Self::Unreachable(kind),
        }
    }

    pub(super) fn from_handshake(error: &io::Error) -> Self {
        let cause = error.get_ref().and_then(|e| e.downcast_ref());
        match cause {
            Some(rustls::Error::InvalidCertificate(fault)) => Self::Certificate(fault_text(fault)),
            Some(other) => Self::Tls(other.to_string()),
            None => Self::Tls(error.kind().to_string()),
        }
    }
}

/// Callers see it, so it does not name the proxy.
fn refusal_text(status: u16) -> String {
    match status {
        // Some proxies answer 401 to a wrong password.
        401 | 407 => {
            format!("the proxy of this service does not accept its user and password ({status})")
        }
        502..=504 => format!("this service's proxy could not reach the receiver ({status})"),
        _ => format!("this service's proxy refused to connect to the receiver ({status})"),
    }
}

fn fault_text(fault: &CertificateError) -> String {
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        CertificateError::UnknownIssuer => "nobody we trust has issued it".to_owned(),
        other => other.to_string(),
    }
}
