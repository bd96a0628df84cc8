//! The trusted certificates.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Trusts the certificate authorities of the public web.
///
/// They are compiled in instead of read from the system: a container may have none, and this way every machine trusts
/// the same ones.
pub fn public_roots() -> Arc<ClientConfig> {
    trusting(public_store())
}

/// Trusts the certificates in this PEM text besides the public authorities. The error is a text for people.
pub fn public_roots_and(pem: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = public_store();
    for certificate in certificates(pem)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("a certificate in it cannot be trusted: {error}"))?;
    }
    Ok(trusting(roots))
}

/// The certificates in a PEM text. The error is a text for people.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("it is no PEM text: {error}"))?;
    if found.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    Ok(found)
}

fn public_store() -> RootCertStore {
    RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    }
}

fn trusting(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}
