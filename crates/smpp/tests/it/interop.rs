//! Interoperability with another SMPP implementation.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use smpp::{
    Address, Body, ConnectError, DataMessage, Decoder, EndReason, Frame, Incoming, Pdu, Session,
    SessionOptions, ShortMessage, Status, Tlvs, encode, message_state, tag,
};
use smpp34::client::{BIND_TYPE, SMSC, SmppClient, SmppClientListener};
use smpp34::server::ESME;
use smpp34::{
    CommandHeader, SmppConnectionInformation, SmppError, SmppServer, SmppServerListener, TlvTag,
};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::peer::{GatedHandler, Smsc, in_time, message, options};

/// The other implementation's SMSC: accepts a message and sends a receipt for it.
struct OtherSmsc {
    esme: Mutex<Option<Arc<ESME>>>,
}

#[async_trait]
impl SmppServerListener for OtherSmsc {
    async fn on_bind_transceiver(
        &self,
        bind: smpp34::bind_transceiver,
        _: &SmppConnectionInformation,
        _: &String,
    ) -> smpp34::bind_transceiver_resp {
        if bind.system_id == "esme" && bind.password == "pw" {
            bind.accept("theirs".into(), Some(0x34))
        } else {
            bind.reject(SmppError::ESME_RINVPASWD)
        }
    }

    async fn on_esme_bound(&self, esme: ESME, _: &String) {
        *self.esme.lock().expect("not poisoned") = Some(Arc::new(esme));
    }

    async fn on_submit_sm(
        &self,
        message: smpp34::submit_sm,
        _: &SmppConnectionInformation,
        _: &String,
    ) -> smpp34::submit_sm_resp {
        if message.short_message == b"refuse" {
            return message.reject(SmppError::ESME_RTHROTTLED);
        }
        let id = format!("id-{}", String::from_utf8_lossy(&message.short_message));
        let esme = self.esme.lock().expect("not poisoned").clone();
        if message.registered_delivery == 1
            && let Some(esme) = esme
        {
            let (from, to) = (
                message.destination_addr.clone(),
                message.source_addr.clone(),
            );
            let id = id.clone();
            tokio::spawn(async move {
                let receipt = esme.deliver_sm().source_addr(from).destination_addr(to);
                let sent = receipt
                    .esm_class(4)
                    .short_message(format!("id:{id} stat:DELIVRD"))
                    .tlv(TlvTag::ReceiptedMessageId, format!("{id}\0"))
                    .tlv(TlvTag::MessageStateTlv, [2])
                    .send()
                    .await;
                assert!(sent.is_ok(), "the receipt is answered");
            });
        }
        message.accept(id)
    }
}

/// Forwards what is delivered.
struct Receipts(mpsc::UnboundedSender<Box<ShortMessage>>);

#[async_trait]
impl Incoming for Receipts {
    async fn deliver(&self, message: Box<ShortMessage>) -> Status {
        self.0.send(message).expect("the test listens");
        Status::OK
    }
}

/// Their server wants a port, not a listener, and another program may take a free port before it starts.
async fn their_smsc() -> (SmppServer, String) {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for _ in 0..20 {
        let free = TcpListener::bind((address, 0)).await.expect("a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let theirs = OtherSmsc {
            esme: Mutex::new(None),
        };
        let mut server = SmppServer::new(address, port, Arc::new(theirs));
        server.start().await;
        if server.is_alive() {
            return (server, format!("{address}:{port}"));
        }
    }
    panic!("no port stays free");
}

#[tokio::test]
async fn our_session_and_their_smsc() {
    let (_server, address) = their_smsc().await;
    let (sender, mut receipts) = mpsc::unbounded_channel();
    let session = in_time(Session::connect(
        &address,
        options(),
        Arc::new(Receipts(sender)),
    ))
    .await
    .expect("bound");
    assert_eq!(session.peer().system_id.as_ref(), b"theirs");
    assert_eq!(session.peer().tlvs.sc_interface_version(), Some(0x34));

    for text in ["one", "two", "three"] {
        let answer = in_time(session.submit(&message(text)))
            .await
            .expect("answered");
        let id = format!("id-{text}");
        assert_eq!(
            (answer.status, answer.message_id.as_ref()),
            (Status::OK, id.as_bytes())
        );
        let receipt = in_time(receipts.recv()).await.expect("a receipt");
        assert_eq!(receipt.esm_class, 4);
        assert_eq!(receipt.source.digits.as_ref(), b"31612345678");
        assert_eq!(
            receipt.tlvs.receipted_message_id().as_deref(),
            Some(id.as_bytes())
        );
        assert_eq!(receipt.tlvs.message_state(), Some(message_state::DELIVERED));
    }
    let refused = in_time(session.submit(&message("refuse"))).await;
    assert_eq!(refused.expect("answered").status, Status::ESME_RTHROTTLED);
    in_time(session.unbind()).await;
    assert_eq!(session.closed().await, EndReason::Unbound);
}

#[tokio::test]
async fn their_smsc_refuses_a_wrong_password() {
    let (_server, address) = their_smsc().await;
    let wrong = SessionOptions {
        password: "wrong".into(),
        ..options()
    };
    let refused = in_time(Session::connect(
        &address,
        wrong,
        Arc::new(GatedHandler::default()),
    ))
    .await;
    assert!(
        matches!(refused, Err(ConnectError::Refused(Status::ESME_RINVPASWD))),
        "{refused:?}"
    );
}

/// The other implementation's client: reports the bind and accepts deliveries.
struct Client(Mutex<Option<oneshot::Sender<SMSC>>>);

#[async_trait]
impl SmppClientListener for Client {
    async fn on_smsc_bound(&self, smsc: SMSC, _: &String) {
        let bound = self.0.lock().expect("not poisoned").take();
        assert!(bound.expect("bound once").send(smsc).is_ok());
    }
}

#[tokio::test]
async fn their_client_and_our_framing() {
    let ours = Smsc::open().await;
    let address = ours.address();
    let (host, port) = address.split_once(':').expect("host and port");
    let (sender, bound) = oneshot::channel();
    let mut client = SmppClient::new(
        host.into(),
        port.parse().expect("a port"),
        false,
        BIND_TYPE::TRX,
        "esme".into(),
        "pw".into(),
        "vm".into(),
        0,
        0,
        String::new(),
        Arc::new(Client(Mutex::new(Some(sender)))),
        10,
    );
    client.start().await;
    let mut peer = ours.accept().await;
    let (_, bind) = peer.take_bind().await;
    assert_eq!(bind.system_type.as_ref(), b"vm");
    let smsc = in_time(bound).await.expect("bound");
    let submit = smsc
        .submit_sm()
        .source_addr("Shop")
        .destination_addr("31612")
        .short_message(b"hello")
        .send();
    let script = async {
        let (sequence, text) = peer.take_message().await;
        assert_eq!(text, "hello");
        peer.answer(sequence, "a1").await;
        peer.deliver(5, "for you").await;
        peer.expect_delivery_answer(5, Status::OK).await;
    };
    let (answer, ()) = tokio::join!(in_time(submit), script);
    let id = answer.map(|answer| answer.message_id);
    assert!(matches!(id.as_ref().map(Option::as_deref), Ok(Some("a1"))));
    client.stop().await;
}

/// A message in which all fields differ.
fn distinct() -> ShortMessage {
    let mut tlvs = Tlvs::new();
    tlvs.push_u16(tag::SAR_MSG_REF_NUM, 0x0102);
    tlvs.push(0x1501, &b"odd"[..]);
    ShortMessage {
        service_type: "CMT".into(),
        source: Address::new(5, 6, "Shop"),
        destination: Address::new(1, 2, "31612"),
        esm_class: 0x40,
        protocol_id: 7,
        priority_flag: 8,
        schedule_delivery_time: "261231235959000+".into(),
        validity_period: "000001000000000R".into(),
        registered_delivery: 9,
        replace_if_present: 10,
        data_coding: 11,
        default_message_id: 12,
        short_message: Bytes::from_static(&[0, 255, 65]),
        tlvs,
    }
}

fn written(body: Body) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode(&Pdu::new(3, body), &mut out).expect("valid");
    out.to_vec()
}

fn read(octets: &[u8]) -> Body {
    let frame = Decoder::default().next(&mut BytesMut::from(octets));
    match frame {
        Ok(Some(Frame::Ok(pdu))) => pdu.body,
        other => panic!("{other:?}"),
    }
}

/// The other implementation decodes and encodes our PDUs to the same octets.
#[test]
fn both_write_the_same_octets() {
    let data = DataMessage {
        service_type: "CMT".into(),
        source: Address::new(5, 6, "Shop"),
        destination: Address::new(1, 2, "31612"),
        esm_class: 3,
        registered_delivery: 4,
        data_coding: 5,
        tlvs: distinct().tlvs,
    };
    let query = smpp::QuerySm {
        message_id: "a1".into(),
        source: Address::new(1, 2, "31612"),
    };
    let cancel = smpp::CancelSm {
        service_type: "CMT".into(),
        message_id: "a1".into(),
        source: Address::new(5, 6, "Shop"),
        destination: Address::new(1, 2, "31612"),
    };
    let outbind = smpp::Outbind {
        system_id: "smsc".into(),
        password: "pw".into(),
    };
    for body in [
        Body::SubmitSm(Box::new(distinct())),
        Body::DeliverSm(Box::new(distinct())),
        Body::DataSm(Box::new(data)),
        Body::QuerySm(Box::new(query)),
        Body::CancelSm(Box::new(cancel)),
        Body::Outbind(Box::new(outbind)),
        Body::EnquireLink,
        Body::GenericNack,
    ] {
        let ours = written(body.clone());
        let header = || CommandHeader::decode(&ours).map_err(|_| "their header");
        let theirs = header().and_then(|header| {
            let wrong = |_| "their body";
            Ok(match &body {
                Body::SubmitSm(_) => smpp34::submit_sm::decode(header, &ours)
                    .map_err(wrong)?
                    .encode(),
                Body::DeliverSm(_) => smpp34::deliver_sm::decode(header, &ours)
                    .map_err(wrong)?
                    .encode(),
                Body::DataSm(_) => smpp34::data_sm::decode(header, &ours)
                    .map_err(wrong)?
                    .encode(),
                Body::QuerySm(_) => smpp34::query_sm::decode(header, &ours)
                    .map_err(wrong)?
                    .encode(),
                // This function takes the body alone.
                Body::CancelSm(_) => smpp34::cancel_sm::decode(header, &ours[smpp::HEADER..])
                    .map_err(wrong)?
                    .encode(),
                Body::Outbind(_) => smpp34::outbind::decode(header, &ours)
                    .map_err(wrong)?
                    .encode(),
                Body::EnquireLink => smpp34::enquire_link::decode(header, &ours)
                    .map_err(wrong)?
                    .encode(),
                _ => smpp34::generic_nack::decode(header, &ours)
                    .map_err(wrong)?
                    .encode(),
            })
        });
        assert_eq!(theirs.as_ref(), Ok(&ours), "{body:?}");
        assert_eq!(read(&ours), body);
    }
}
