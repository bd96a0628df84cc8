//! Why a receiver could not be reached, in words for people.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustls::CertificateError;

/// Why a connection was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialProblem {
    /// The URI has no host that can be dialled.
    #[error("the URL has no host that can be called")]
    NoHost,
    /// No address is known for the name.
    #[error("the name does not resolve")]
    Unresolved,
    /// The name server is slow.
    #[error("the name was not resolved within {} s", .0.as_secs())]
    LookupTimeout(Duration),
    /// The guard says no. Which address a name leads to from here, and what our own are, is not for callers.
    #[error("the host leads to an address that may not be called")]
    Forbidden(IpAddr),
    /// There are source addresses, but none of this one's family.
    #[error("the host cannot be called: no source address of the family of its address is set")]
    NoSource(IpAddr),
    /// The source address is not this machine's.
    #[error("the source address that is set cannot be used: {1}")]
    Source(IpAddr, io::ErrorKind),
    /// Nobody listens there.
    #[error("refused the connection")]
    Refused,
    /// It does not answer at all, or not in TLS.
    #[error("the connection was not ready within {} s", .0.as_secs())]
    ConnectTimeout(Duration),
    /// The network says no.
    #[error("cannot be reached: {0}")]
    Unreachable(io::ErrorKind),
    /// It is not who it should be.
    #[error("the TLS certificate is not valid: {0}")]
    Certificate(String),
    /// TLS failed otherwise.
    #[error("TLS failed: {0}")]
    Tls(String),
}

/// Why a connection was not opened, and to which address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct DialError {
    /// The last address that was dialled, if it came so far.
    pub address: Option<SocketAddr>,
    /// Why.
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
