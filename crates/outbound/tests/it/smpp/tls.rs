//! Links with TLS.

use std::net::SocketAddr;

use domain::ports::{Carrier as _, Health};
use outbound::SmppSettings;
use outbound::smpp::SmppTls;
use testkit::smsc::Smsc;
use tokio::net::{TcpListener, TcpStream};

use super::setup::{Sink, connected, eventually, queued, settings, start, submit, taken};
use crate::tls::{Identity, acceptor, self_signed};

/// Starts a TLS proxy in front of an SMSC and returns its address.
async fn tls_proxy(smsc: SocketAddr, identity: Identity) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound");
    let acceptor = acceptor(identity);
    tokio::spawn(async move {
        while let Ok((outer, _)) = listener.accept().await {
            let accepting = acceptor.accept(outer);
            tokio::spawn(async move {
                let mut inner = TcpStream::connect(smsc).await.expect("the SMSC listens");
                // A client that does not trust us ends only its own connection.
                if let Ok(mut outer) = accepting.await {
                    let _ended = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn a_trusted_smsc_gets_messages() {
    let (smsc, identity) = (Smsc::start(), self_signed());
    let tls = SmppTls {
        authorities: vec![identity.certificate.clone()],
        ..SmppTls::default()
    };
    let address = tls_proxy(smsc.addr(), identity).await;
    let (carrier, _sink) = connected(SmppSettings {
        address: address.to_string(),
        tls: Some(tls),
        ..settings(&smsc)
    })
    .await;
    assert_eq!(
        submit(&carrier, &queued(1, "Hello")).await,
        taken(1_000_000)
    );
    carrier.stop().await;
}

#[tokio::test]
async fn an_untrusted_smsc_gets_no_data() {
    let (smsc, identity) = (Smsc::start(), self_signed());
    let trusted = SmppTls {
        authorities: vec![identity.certificate.clone()],
        ..SmppTls::default()
    };
    let wrong_name = SmppTls {
        server_name: Some("smsc.example".to_owned()),
        ..trusted
    };
    let address = tls_proxy(smsc.addr(), identity).await;
    for (name, tls) in [("unknown", SmppTls::default()), ("wrong name", wrong_name)] {
        let settings = SmppSettings {
            address: address.to_string(),
            tls: Some(tls),
            ..settings(&smsc)
        };
        let carrier = start(settings, &Sink::new());
        eventually("the note says why", || {
            carrier
                .state()
                .note
                .is_some_and(|note| note.contains("TLS"))
        })
        .await;
        assert_eq!(carrier.health(), Health::Down, "{name}");
        carrier.stop().await;
    }
    assert_eq!(smsc.log().binds.len(), 0, "no password was sent");
}
