//! TLS with certificates that are reloaded when their files change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Why a certificate or its key is not used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{} holds no {what} in PEM form", .path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What the parser said.
        #[source]
        source: pem::Error,
    },
    /// The key is of no use, or belongs to another certificate.
    #[error("the certificate and the key do not go together")]
    Mismatch(#[source] rustls::Error),
}

/// A certificate that is reloaded when its files change.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

#[derive(Debug)]
struct Current {
    files: RwLock<(Vec<u8>, Vec<u8>)>,
    certified: RwLock<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.certified.read().expect("no holder panics").clone())
    }
}

impl Tls {
    /// Reads the files and starts to watch them. Must be called inside a tokio runtime.
    pub fn start(certificate: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let files = (read(certificate)?, read(key)?);
        let certified = RwLock::new(certify(certificate, key, &files)?);
        let current = Arc::new(Current {
            files: RwLock::new(files),
            certified,
        });
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Mismatch)?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        let tls = Arc::new(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            current,
            config: Arc::new(config),
        });
        let followed = Arc::downgrade(&tls);
        supervise::spawn("tls-files", move || follow(followed.clone()));
        Ok(tls)
    }

    /// Accepts TLS connections with the certificate that is in use then.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.config.clone().into()
    }

    /// Loads changed files. In the middle of a renewal they may not match; the old ones stay in use then.
    fn reload(&self) -> Result<bool, TlsError> {
        let files = (read(&self.certificate)?, read(&self.key)?);
        if *self.current.files.read().expect("no holder panics") == files {
            return Ok(false);
        }
        let certified = certify(&self.certificate, &self.key, &files)?;
        *self.current.certified.write().expect("no holder panics") = certified;
        *self.current.files.write().expect("no holder panics") = files;
        Ok(true)
    }
}

async fn follow(tls: std::sync::Weak<Tls>) {
    let mut tick = tokio::time::interval(CHECK_EVERY);
    loop {
        tick.tick().await;
        let Some(tls) = tls.upgrade() else { return };
        let reloaded = tokio::task::spawn_blocking(move || tls.reload()).await;
        match reloaded {
            Ok(Ok(true)) => tracing::info!("the renewed TLS certificate is in use"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the TLS files changed, but cannot be used; the old ones serve on");
            }
            Err(error) => tracing::error!(%error, "looking at the TLS files failed"),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

fn certify(
    certificate: &Path,
    key: &Path,
    files: &(Vec<u8>, Vec<u8>),
) -> Result<Arc<CertifiedKey>, TlsError> {
    let pem = |path: &Path, what| {
        let path = path.to_owned();
        move |source| TlsError::Pem { path, what, source }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&files.0)
        .collect::<Result<_, _>>()
        .map_err(pem(certificate, "certificate"))?;
    if chain.is_empty() {
        return Err(pem(certificate, "certificate")(pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_slice(&files.1).map_err(pem(key, "private key"))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map(Arc::new)
        .map_err(TlsError::Mismatch)
}
