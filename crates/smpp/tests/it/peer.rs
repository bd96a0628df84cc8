//! An SMSC that a test scripts, PDU by PDU.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smpp::{
    Address, Bind, BindKind, BindResp, Body, Decoder, Frame, Framed, Incoming, MessageResp, Pdu,
    Session, SessionOptions, ShortMessage, Status,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The maximum duration of a test step.
pub(crate) const DEADLINE: Duration = Duration::from_mins(10);

/// The result of a step, within the deadline.
pub(crate) async fn in_time<T>(step: impl Future<Output = T>) -> T {
    timeout(DEADLINE, step)
        .await
        .expect("the step ends before the deadline")
}

/// Waits for a state.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, wait).await.expect(what);
}

/// Options with short timeouts.
pub(crate) fn options() -> SessionOptions {
    SessionOptions {
        system_id: "esme".into(),
        password: "pw".into(),
        window: 4,
        response_timeout: DEADLINE,
        enquire_every: DEADLINE,
        ..SessionOptions::default()
    }
}

/// A message with this text.
pub(crate) fn message(text: &str) -> ShortMessage {
    ShortMessage {
        source: Address::new(5, 0, "Shop"),
        destination: Address::new(1, 1, "31612345678"),
        registered_delivery: 1,
        short_message: Bytes::copy_from_slice(text.as_bytes()),
        ..ShortMessage::default()
    }
}

/// A listening SMSC.
pub(crate) struct Smsc {
    listener: TcpListener,
}

impl Smsc {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self { listener }
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_addr().expect("bound").to_string()
    }

    pub(crate) async fn accept(&self) -> Peer<TcpStream> {
        let (stream, _) = in_time(self.listener.accept()).await.expect("a client");
        stream.set_nodelay(true).expect("a socket");
        Peer::new(stream)
    }
}

/// A session and the SMSC at its other end.
pub(crate) async fn bound(options: SessionOptions) -> (Session, Peer<TcpStream>) {
    bound_with(options, Arc::new(GatedHandler::default())).await
}

pub(crate) async fn bound_with(
    options: SessionOptions,
    incoming: Arc<dyn Incoming>,
) -> (Session, Peer<TcpStream>) {
    let smsc = Smsc::open().await;
    let address = smsc.address();
    let accept = async {
        let mut peer = smsc.accept().await;
        peer.take_bind().await;
        peer
    };
    let (session, peer) = tokio::join!(Session::connect(&address, options, incoming), accept);
    (session.expect("bound"), peer)
}

/// One connection, from the SMSC's side.
pub(crate) struct Peer<S> {
    framed: Framed<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            framed: Framed::new(stream, Decoder::default()),
        }
    }

    pub(crate) fn stream(&mut self) -> &S {
        self.framed.stream_mut()
    }

    pub(crate) fn into_stream(self) -> S {
        self.framed.into_parts().0
    }

    /// The next PDU; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Pdu> {
        match in_time(self.framed.next()).await {
            Ok(Some(Frame::Ok(pdu))) => Some(pdu),
            Ok(None) | Err(_) => None,
            Ok(Some(bad)) => panic!("the client wrote {bad:?}"),
        }
    }

    pub(crate) async fn pdu(&mut self) -> Pdu {
        self.next().await.expect("a PDU")
    }

    /// Waits for this body and returns its sequence number.
    pub(crate) async fn expect(&mut self, body: Body) -> u32 {
        let pdu = self.pdu().await;
        assert_eq!(pdu.body, body);
        pdu.sequence
    }

    /// Waits for the end of the connection.
    pub(crate) async fn expect_closed(&mut self) {
        let after = self.next().await;
        assert_eq!(after, None, "the connection is closed");
    }

    pub(crate) async fn send(&mut self, pdu: Pdu) {
        in_time(self.framed.send(&pdu)).await.expect("sent");
    }

    pub(crate) async fn octets(&mut self, octets: &[u8]) {
        in_time(self.framed.stream_mut().write_all(octets))
            .await
            .expect("sent");
    }

    pub(crate) async fn take_bind(&mut self) -> (BindKind, Box<Bind>) {
        let Pdu { sequence, body, .. } = self.pdu().await;
        let Body::Bind(kind, bind) = body else {
            panic!("a bind, not {body:?}");
        };
        let resp = BindResp {
            system_id: "smsc".into(),
            ..BindResp::default()
        };
        self.send(Pdu::new(sequence, Body::BindResp(kind, resp)))
            .await;
        (kind, bind)
    }

    /// Waits for a message and returns its sequence number and text.
    pub(crate) async fn take_message(&mut self) -> (u32, String) {
        let Pdu { sequence, body, .. } = self.pdu().await;
        let Body::SubmitSm(message) = body else {
            panic!("a message, not {body:?}");
        };
        let text = String::from_utf8(message.short_message.to_vec());
        (sequence, text.expect("text"))
    }

    /// Accepts a message with this ID.
    pub(crate) async fn answer(&mut self, sequence: u32, id: impl Debug) {
        let resp = MessageResp::new(format!("{id:?}").replace('"', ""));
        self.send(Pdu::new(sequence, Body::SubmitSmResp(resp)))
            .await;
    }

    /// Delivers a message without waiting for the response.
    pub(crate) async fn deliver(&mut self, sequence: u32, text: &str) {
        let body = Body::DeliverSm(Box::new(message(text)));
        self.send(Pdu::new(sequence, body)).await;
    }

    /// Waits for the response to a delivered message.
    pub(crate) async fn expect_delivery_answer(&mut self, sequence: u32, status: Status) {
        let body = Body::DeliverSmResp(MessageResp::default());
        assert_eq!(
            self.pdu().await,
            Pdu::with_status(status, sequence, body),
            "answered"
        );
    }
}

/// Handles deliveries, once allowed to.
pub(crate) struct GatedHandler {
    gate: Semaphore,
    started: AtomicUsize,
}

impl Default for GatedHandler {
    fn default() -> Self {
        Self {
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            started: AtomicUsize::new(0),
        }
    }
}

impl GatedHandler {
    /// Handles nothing until [`GatedHandler::let_through`].
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self {
            gate: Semaphore::new(0),
            started: AtomicUsize::new(0),
        })
    }

    pub(crate) fn let_through(&self, messages: usize) {
        self.gate.add_permits(messages);
    }

    /// How many deliveries have arrived.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Incoming for GatedHandler {
    async fn deliver(&self, message: Box<ShortMessage>) -> Status {
        self.started.fetch_add(1, Ordering::SeqCst);
        let gate = self.gate.acquire().await.expect("never closed");
        gate.forget();
        match message.short_message.as_ref() {
            b"refuse" => Status::ESME_RX_P_APPN,
            b"panic" => panic!("as asked"),
            _ => Status::OK,
        }
    }
}
