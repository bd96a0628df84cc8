//! TLS to the server, set in the URL as libpq does.

use std::error::Error;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ring::digest;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::url::{SslMode, TlsSettings};

/// The ALPN protocol, so that no other service on the same port answers.
const PROTOCOL: &[u8] = b"postgresql";

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsFault {
    #[error("cannot read {key} ({})", path.display())]
    File {
        key: &'static str,
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("sslrootcert ({}) holds no certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("sslcert and sslkey do not fit together, or are of a kind that is not supported")]
    ClientCertificate(#[source] rustls::Error),
    #[error("'{0}' is not a host name that a certificate can have")]
    Name(String),
    #[error("TLS is not possible without a host name")]
    NoName,
    #[error("the handshake with sslmode={mode} failed{}", advice(*mode))]
    Handshake {
        mode: SslMode,
        #[source]
        source: io::Error,
    },
}

fn advice(mode: SslMode) -> &'static str {
    match mode {
        SslMode::VerifyFull => {
            "; the server's certificate must be signed by an authority of sslrootcert and name the host of the URL"
        }
        SslMode::VerifyCa => {
            "; the server's certificate must be signed by an authority of sslrootcert"
        }
        _ => "",
    }
}

/// Makes connections with these settings. Files are read for each connection, so that renewed ones count.
#[derive(Debug, Clone)]
pub(super) struct Connector(pub(super) TlsSettings);

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = TlsFault;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, TlsFault> {
        let mode = self.0.mode;
        // A socket on this machine has no host.
        if host.is_empty() || mode == SslMode::Disable {
            return Ok(Handshake { mode, with: None });
        }
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| TlsFault::Name(host.to_owned()))?;
        let config = Arc::new(client_config(&self.0)?);
        Ok(Handshake {
            mode,
            with: Some((TlsConnector::from(config), name)),
        })
    }
}

/// A connection that is about to be encrypted.
pub(super) struct Handshake {
    mode: SslMode,
    with: Option<(TlsConnector, ServerName<'static>)>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = TlsFault;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted<S>, TlsFault>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let (connector, name) = self.with.ok_or(TlsFault::NoName)?;
            let mode = self.mode;
            let connected = connector.connect(name, stream).await;
            let stream = connected.map_err(|source| TlsFault::Handshake { mode, source })?;
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    /// Binds the password proof to this connection, so that nobody in between can forward it.
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        match certificate.and_then(|certificate| fingerprint(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

/// The hash of a certificate by the algorithm of its signature (RFC 5929); `None` if the algorithm defines no hash.
fn fingerprint(certificate: &[u8]) -> Option<Vec<u8>> {
    const SHA384: [&[u8]; 2] = [
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c",
        b"\x2a\x86\x48\xce\x3d\x04\x03\x03",
    ];
    const SHA512: [&[u8]; 2] = [
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d",
        b"\x2a\x86\x48\xce\x3d\x04\x03\x04",
    ];
    // With MD5 and SHA-1, too, SHA-256 is used.
    const SHA256: [&[u8]; 5] = [
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04",
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05",
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b",
        b"\x2a\x86\x48\xce\x3d\x04\x01",
        b"\x2a\x86\x48\xce\x3d\x04\x03\x02",
    ];
    let (_, inside, _) = element(certificate)?;
    let (_, _, behind_contents) = element(inside)?;
    let (_, algorithm, _) = element(behind_contents)?;
    let (tag, oid, _) = element(algorithm)?;
    let algorithm = match oid {
        _ if tag != 0x06 => return None,
        oid if SHA256.contains(&oid) => &digest::SHA256,
        oid if SHA384.contains(&oid) => &digest::SHA384,
        oid if SHA512.contains(&oid) => &digest::SHA512,
        _ => return None,
    };
    Some(digest::digest(algorithm, certificate).as_ref().to_vec())
}

/// The first element of DER: its tag, its contents, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let count = usize::from(first & 0x7f);
        if count > 4 || rest.len() < count {
            return None;
        }
        let (bytes, behind) = rest.split_at(count);
        length = bytes
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        rest = behind;
    }
    let (contents, behind) = rest.split_at_checked(length)?;
    Some((tag, contents, behind))
}

fn client_config(settings: &TlsSettings) -> Result<ClientConfig, TlsFault> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Verifier::new(settings, &provider)?);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default versions of TLS")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match (&settings.cert, &settings.key) {
        (Some(cert), Some(key)) => builder
            .with_client_auth_cert(certificates("sslcert", cert)?, private_key(key)?)
            .map_err(TlsFault::ClientCertificate)?,
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|source| TlsFault::File {
            key,
            path: path.to_owned(),
            source: Box::new(source),
        })
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    PrivateKeyDer::from_pem_file(path).map_err(|source| TlsFault::File {
        key: "sslkey",
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// Checks a server's certificate as the mode requires.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Checks the chain of certificates; `None` accepts every certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
}

impl Verifier {
    fn new(settings: &TlsSettings, provider: &Arc<CryptoProvider>) -> Result<Self, TlsFault> {
        let mut roots = RootCertStore::empty();
        match &settings.root {
            Some(path) => {
                let (added, _) =
                    roots.add_parsable_certificates(certificates("sslrootcert", path)?);
                if added == 0 {
                    return Err(TlsFault::NoCertificate(path.clone()));
                }
            }
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let chain = settings.checks_chain().then(|| {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .expect("there are roots, and no revocation lists")
        });
        Ok(Self {
            provider: provider.clone(),
            chain,
            checks_name: settings.mode == SslMode::VerifyFull,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // The name is checked last, after everything else has passed.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of a certificate, up to its algorithm; the rest is not read.
    fn certificate(oid: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, contents: &[u8]| {
            let length = u8::try_from(contents.len()).expect("short");
            [&[tag, 0x81, length], contents].concat()
        };
        let algorithm = wrap(0x30, &wrap(0x06, oid));
        let contents = [wrap(0x30, b"anything"), algorithm].concat();
        wrap(0x30, &contents)
    }

    #[test]
    fn a_certificate_is_hashed_by_its_own_algorithm() {
        for (name, oid, length) in [
            (
                "RSA, SHA-1",
                &b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05"[..],
                Some(32),
            ),
            (
                "RSA, SHA-256",
                b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b",
                Some(32),
            ),
            (
                "RSA, SHA-512",
                b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d",
                Some(64),
            ),
            (
                "ECDSA, SHA-384",
                b"\x2a\x86\x48\xce\x3d\x04\x03\x03",
                Some(48),
            ),
            ("Ed25519", b"\x2b\x65\x70", None),
        ] {
            let hash = fingerprint(&certificate(oid));
            assert_eq!(hash.map(|hash| hash.len()), length, "{name}");
        }
        let whole = certificate(b"\x2b\x65\x70");
        for end in 0..whole.len() {
            assert_eq!(fingerprint(&whole[..end]), None);
        }
        assert_eq!(element(b"\x30\x85\x01\x01\x01\x01\x01"), None);
    }
}
