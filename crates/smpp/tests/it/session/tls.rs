//! Sessions over TLS.

use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use smpp::{ConnectError, Session, SessionOptions, Tls};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::peer::{GatedHandler, Peer, in_time, message, options};

struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// A self-signed certificate for 127.0.0.1.
fn self_signed() -> Identity {
    let mut command = Command::new("openssl");
    command
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=smsc", "-config", "/dev/null"])
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
    }
}

fn acceptor(identity: Identity) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key)
        .expect("a usable identity");
    TlsAcceptor::from(Arc::new(config))
}

fn trusting(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> SessionOptions {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    SessionOptions {
        tls: Some(Tls {
            config: Arc::new(config),
            name: ServerName::try_from("127.0.0.1").expect("a name"),
        }),
        ..options()
    }
}

/// Connects and returns the result of both sides.
async fn connect_both(
    identity: Identity,
    options: SessionOptions,
) -> (
    Result<Session, ConnectError>,
    Option<Peer<TlsStream<TcpStream>>>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let acceptor = acceptor(identity);
    let accept = async {
        let (stream, _) = in_time(listener.accept()).await.expect("a client");
        let mut peer = Peer::new(in_time(acceptor.accept(stream)).await.ok()?);
        peer.take_bind().await;
        Some(peer)
    };
    tokio::join!(
        Session::connect(&address, options, Arc::new(GatedHandler::default())),
        accept
    )
}

#[tokio::test]
async fn messages_go_both_ways() {
    let identity = self_signed();
    let options = trusting([identity.certificate.clone()]);
    let (session, peer) = connect_both(identity, options).await;
    let (session, mut peer) = (session.expect("bound"), peer.expect("accepted"));
    let text = message("secret");
    let script = async {
        let (sequence, text) = peer.take_message().await;
        assert_eq!(text, "secret");
        peer.deliver(7, "back").await;
        peer.expect_delivery_answer(7, smpp::Status::OK).await;
        peer.answer(sequence, "a1").await;
    };
    let (answer, ()) = tokio::join!(session.submit(&text), script);
    assert_eq!(answer.expect("answered").message_id.as_ref(), b"a1");
    drop(session);
    peer.expect(smpp::Body::Unbind).await;
    peer.expect_closed().await;
}

#[tokio::test]
async fn an_smsc_needs_a_trusted_certificate() {
    let (session, _) = connect_both(self_signed(), trusting([])).await;
    assert!(matches!(session, Err(ConnectError::Tls(_))), "{session:?}");
}
