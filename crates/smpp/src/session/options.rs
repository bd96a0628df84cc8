//! Options of a session.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::ServerName;

use crate::{Address, Bind, BindKind, DEFAULT_MAX_PDU};

/// How to open a session, and how it behaves. The `Debug` output omits the password.
#[derive(Clone)]
pub struct SessionOptions {
    /// The direction of messages.
    pub bind: BindKind,
    /// The name of the client.
    pub system_id: String,
    /// The password.
    pub password: String,
    /// The type of the client; often empty.
    pub system_type: String,
    /// The protocol version to announce: 0x34, 0x50.
    pub interface_version: u8,
    /// The addresses that this client serves; usually empty.
    pub address_range: Address,
    /// How many messages may wait for an answer at once; at least one.
    pub window: usize,
    /// The timeout for name lookup, connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// The timeout of the bind.
    pub bind_timeout: Duration,
    /// The timeout of any other answer, after which the link is probed with `enquire_link`. The probe has the same
    /// timeout, which begins again with each message that the SMSC sends or answers.
    pub response_timeout: Duration,
    /// How long to wait for the answer to a message while the link answers its probes, and for the answer to a probe
    /// while the SMSC sends or answers messages. At least `response_timeout`.
    pub late_answer: Duration,
    /// After this long without receiving anything, the link is probed. Zero: only when an answer is late.
    pub enquire_every: Duration,
    /// After this long without messages in either direction, the session unbinds. `None`: never.
    pub idle: Option<Duration>,
    /// The local address to connect from.
    pub source: Option<IpAddr>,
    /// TLS settings, if the SMSC uses TLS.
    pub tls: Option<Tls>,
    /// The longest PDU to accept. A longer one ends the session.
    pub max_pdu: usize,
    /// How many messages from the SMSC are handled at once; at least one. Beyond that nothing is read.
    pub incoming: usize,
    /// The sequence number of the bind. Later requests count up from there.
    pub first_sequence: u32,
}

/// TLS settings.
#[derive(Clone)]
pub struct Tls {
    /// The trusted certificates, and the client's own certificate if it has one.
    pub config: Arc<rustls::ClientConfig>,
    /// The name in the SMSC's certificate.
    pub name: ServerName<'static>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            bind: BindKind::Transceiver,
            system_id: String::new(),
            password: String::new(),
            system_type: String::new(),
            interface_version: 0x34,
            address_range: Address::default(),
            window: 10,
            connect_timeout: Duration::from_secs(10),
            bind_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(30),
            late_answer: Duration::from_mins(5),
            enquire_every: Duration::from_secs(30),
            idle: None,
            source: None,
            tls: None,
            max_pdu: DEFAULT_MAX_PDU,
            incoming: 100,
            first_sequence: 1,
        }
    }
}

impl SessionOptions {
    pub(super) fn bind_body(&self) -> Bind {
        let octets = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        Bind {
            system_id: octets(&self.system_id),
            password: octets(&self.password),
            system_type: octets(&self.system_type),
            interface_version: self.interface_version,
            address_range: self.address_range.clone(),
        }
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions")
            .field("bind", &self.bind)
            .field("system_id", &self.system_id)
            .field("system_type", &self.system_type)
            .field("interface_version", &self.interface_version)
            .field("address_range", &self.address_range)
            .field("window", &self.window)
            .field("connect_timeout", &self.connect_timeout)
            .field("bind_timeout", &self.bind_timeout)
            .field("response_timeout", &self.response_timeout)
            .field("late_answer", &self.late_answer)
            .field("enquire_every", &self.enquire_every)
            .field("idle", &self.idle)
            .field("source", &self.source)
            .field("tls", &self.tls)
            .field("max_pdu", &self.max_pdu)
            .field("incoming", &self.incoming)
            .field("first_sequence", &self.first_sequence)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::SessionOptions;

    #[test]
    fn the_password_is_not_in_debug_text() {
        let options = SessionOptions {
            system_id: "esme".into(),
            password: "hush".into(),
            ..SessionOptions::default()
        };
        let text = format!("{options:?}");
        assert!(text.contains("esme") && !text.contains("hush"), "{text}");
    }
}
