//! `switchboard health`: asks the service on this machine whether it is ready, for health checks of containers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use crate::config::{Config, reachable};

/// The time to connect, and for each read and write.
const PATIENCE: Duration = Duration::from_secs(5);
/// The answer of a service is shorter.
const MAX_ANSWER_BYTES: u64 = 16 * 1024;

/// Succeeds if the service at the configured address, or at `listen`, accepts messages.
pub(super) fn run(config: &Config, listen: Option<SocketAddr>) -> anyhow::Result<()> {
    let address = reachable(listen.unwrap_or(config.server.listen));
    let answer = ask(config, address)
        .with_context(|| format!("the service at {address} does not answer"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.split(' ').nth(1) != Some("200") {
        bail!("the service at {address} is not ready: {}", body.trim());
    }
    println!("ready");
    Ok(())
}

fn ask(config: &Config, address: SocketAddr) -> anyhow::Result<String> {
    let mut plain = TcpStream::connect_timeout(&address, PATIENCE)?;
    plain.set_read_timeout(Some(PATIENCE))?;
    plain.set_write_timeout(Some(PATIENCE))?;
    match &config.tls.cert {
        Some(certificate) => {
            let client = Arc::new(tls_client(certificate)?);
            let name = ServerName::from(address.ip());
            let mut tls = StreamOwned::new(ClientConnection::new(client, name)?, plain);
            exchange(&mut tls, address)
        }
        None => exchange(&mut plain, address),
    }
}

fn exchange(stream: &mut (impl Read + Write), address: SocketAddr) -> anyhow::Result<String> {
    write!(
        stream,
        "GET /health/ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    stream.flush()?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Accepts only the service's own certificate, whatever name it is for.
fn tls_client(certificate: &Path) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let own = CertificateDer::from_pem_file(certificate)
        .with_context(|| format!("cannot read {}", certificate.display()))?;
    let verifier = OwnCertificate {
        own,
        provider: provider.clone(),
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

#[derive(Debug)]
struct OwnCertificate {
    own: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OwnCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.own {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General(
                "this is not the certificate of tls.cert".to_owned(),
            ))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
