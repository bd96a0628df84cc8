//! TLS settings of a link.

use std::sync::Arc;

use ::smpp::Tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::{SmppSettings, SmppTls};
use crate::dial::certificates;

impl SmppTls {
    /// Trusts only the certificate authorities in this PEM text. The error is a text for people.
    pub fn trusting(pem: &[u8]) -> Result<Self, String> {
        Ok(Self {
            server_name: None,
            authorities: certificates(pem)?,
        })
    }
}

/// The TLS options of a link, if TLS is configured. The error is a text for people.
pub(super) fn options(settings: &SmppSettings) -> Result<Option<Tls>, String> {
    let Some(tls) = &settings.tls else {
        return Ok(None);
    };
    let name = tls
        .server_name
        .as_deref()
        .unwrap_or(host(&settings.address));
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("{name:?} is not a name that a certificate can have; check tls"))?;
    let mut roots = RootCertStore {
        roots: if tls.authorities.is_empty() {
            webpki_roots::TLS_SERVER_ROOTS.to_vec()
        } else {
            Vec::new()
        },
    };
    for authority in &tls.authorities {
        let added = roots.add(authority.clone());
        added.map_err(|error| format!("an authority cannot be trusted: {error}; check tls"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(Tls {
        config: Arc::new(config),
        name,
    }))
}

/// The host in `host:port`, without the brackets of an IPv6 address.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(address: &str, server_name: Option<&str>) -> Result<String, String> {
        let settings = SmppSettings {
            tls: Some(SmppTls {
                server_name: server_name.map(str::to_owned),
                ..SmppTls::default()
            }),
            ..SmppSettings::new("alpha", address, "user", "hush")
        };
        let tls = options(&settings)?.expect("it is asked for");
        Ok(tls.name.to_str().into_owned())
    }

    #[test]
    fn the_certificates_name_is_the_hosts_unless_set() {
        for (address, server_name, expected) in [
            ("smsc.example:2775", None, "smsc.example"),
            ("192.0.2.7:2775", None, "192.0.2.7"),
            ("[2001:db8::7]:2775", None, "2001:db8::7"),
            ("192.0.2.7:2775", Some("smsc.example"), "smsc.example"),
        ] {
            assert_eq!(name(address, server_name).as_deref(), Ok(expected));
        }
        assert!(name("smsc example:2775", None).is_err());
    }

    #[test]
    fn without_tls_there_is_nothing_to_trust() {
        let settings = SmppSettings::new("alpha", "smsc.example:2775", "user", "hush");
        assert!(options(&settings).is_ok_and(|tls| tls.is_none()));
    }

    #[test]
    fn an_invalid_authority_is_reported() {
        let settings = SmppSettings {
            tls: Some(SmppTls {
                authorities: vec![vec![1, 2, 3].into()],
                ..SmppTls::default()
            }),
            ..SmppSettings::new("alpha", "smsc.example:2775", "user", "hush")
        };
        let problem = options(&settings).expect_err("no certificate");
        assert!(problem.contains("check tls"), "{problem}");
    }
}
