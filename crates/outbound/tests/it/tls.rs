//! Receivers with TLS.

use std::process::{Command, Stdio};
use std::sync::Arc;

use outbound::CallbackClient;
use outbound::dial::public_roots_and;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::receiver::{Receiver, Then, answer};
use crate::setup::{ScriptedResolver, deliver, options};

pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    /// Certificate and key.
    pub(crate) pem: Vec<u8>,
}

/// A self-signed certificate for 127.0.0.1.
pub(crate) fn self_signed() -> Identity {
    let mut command = Command::new("openssl");
    command
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=receiver", "-config", "/dev/null"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", "/dev/stdout", "-out", "/dev/stdout"])
        .stdin(Stdio::null());
    let output = command.output().expect("this needs the program openssl");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    Identity {
        certificate: CertificateDer::from_pem_slice(&output.stdout).expect("a certificate"),
        key: PrivateKeyDer::from_pem_slice(&output.stdout).expect("a key"),
        pem: output.stdout,
    }
}

pub(crate) fn acceptor(identity: Identity) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key)
        .expect("a usable identity");
    TlsAcceptor::from(Arc::new(config))
}

pub(crate) async fn start(
    identity: Identity,
    script: impl Fn(usize) -> (String, Then) + Clone + Send + Sync + 'static,
) -> Receiver {
    let acceptor = acceptor(identity);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    Receiver::serve(listener, script, move |stream| {
        let accepting = acceptor.accept(stream);
        async { accepting.await.ok() }
    })
}

pub(crate) fn trusting(certificate: CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

#[tokio::test]
async fn a_receiver_needs_a_trusted_certificate() {
    let identity = self_signed();
    let certificate = identity.certificate.clone();
    let receiver = start(identity, |_| (answer("200 OK", "OK"), Then::Continue)).await;
    let port = receiver.address.port();
    for (name, trusted, host, reason) in [
        ("trusted", true, "127.0.0.1", "received"),
        (
            "unknown",
            false,
            "127.0.0.1",
            "the TLS certificate is not valid: nobody we trust has issued it",
        ),
        (
            "for another name",
            true,
            "other.example",
            "the TLS certificate is not valid: it is for another name",
        ),
    ] {
        let mut options = options();
        options.dialer.resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
        if trusted {
            options.dialer.tls = trusting(certificate.clone());
        }
        let client = CallbackClient::new(options);
        let attempt = deliver(&client, &format!("https://{host}:{port}/"))
            .await
            .attempt;
        assert_eq!(attempt.reason, reason, "{name}");
        assert_eq!(
            attempt.address,
            Some(receiver.address.to_string()),
            "{name}"
        );
    }
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn other_authorities_are_read_from_pem() {
    for (pem, expected) in [
        (self_signed().pem, None),
        (b"".to_vec(), Some("it holds no certificate")),
        (
            b"-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n".to_vec(),
            Some("cannot be trusted"),
        ),
        (
            b"-----BEGIN CERTIFICATE-----\n?\n".to_vec(),
            Some("it is no PEM text"),
        ),
    ] {
        let error = public_roots_and(&pem).err();
        let fits = match expected {
            None => error.is_none(),
            Some(text) => error.as_ref().is_some_and(|error| error.contains(text)),
        };
        assert!(fits, "{expected:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_receiver_without_tls_gets_no_plain_text() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let receiver = Receiver::serve(
        listener,
        |_| (answer("200 OK", "OK"), Then::Continue),
        |mut stream| async move {
            let refusal = answer("400 Bad Request", "this port speaks HTTP");
            stream.write_all(refusal.as_bytes()).await.ok()?;
            Some(stream)
        },
    );
    let url = format!("https://{}/", receiver.address);
    let attempt = deliver(&CallbackClient::new(options()), &url).await.attempt;
    assert!(
        attempt.reason.starts_with("TLS failed: "),
        "{}",
        attempt.reason
    );
    assert!(receiver.requests().is_empty());
}
