//! The trusted certificates.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// Trusts the certificate authorities of the public web.
///
/// They are compiled in instead of read from the system: a container may have none, and this way every machine trusts
/// the same ones.
pub fn public_roots() -> Arc<ClientConfig> {
    let roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}
