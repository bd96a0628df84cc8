use super::*;
use domain::{Code, Timestamp};
use smpp::{Address, BindKind, Body, DEFAULT_MAX_PDU, Decoder, Frame, Framed, Pdu, ShortMessage};
use tokio::net::TcpStream;

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// A bound client.
struct Client {
    framed: Framed<TcpStream>,
    sequence: u32,
}

async fn start(settings: SmscSettings) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(Smsc::new(settings, Arc::new(FixedClock), None).serve(listener));
    address
}

impl Client {
    async fn connect(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("it listens");
        let framed = Framed::new(stream, Decoder::new(DEFAULT_MAX_PDU));
        Self {
            framed,
            sequence: 0,
        }
    }

    async fn bind(&mut self, kind: BindKind, password: &str) -> Status {
        let bind = Bind {
            system_id: "me".into(),
            password: password.to_owned().into(),
            ..Bind::default()
        };
        self.ask(Body::Bind(kind, Box::new(bind))).await.status
    }

    async fn ask(&mut self, body: Body) -> Pdu {
        self.sequence += 1;
        let request = Pdu::new(self.sequence, body);
        self.framed.send(&request).await.expect("open");
        self.next().await
    }

    async fn submit(&mut self, to: &str) -> (Status, String) {
        let message = ShortMessage {
            source: Address::new(5, 0, "Acme"),
            destination: Address::new(1, 1, to.to_owned()),
            registered_delivery: 1,
            short_message: "Hello".into(),
            ..ShortMessage::default()
        };
        let answer = self.ask(Body::SubmitSm(Box::new(message))).await;
        let Body::SubmitSmResp(resp) = answer.body else {
            panic!("{answer:?}")
        };
        let id = String::from_utf8(resp.message_id.to_vec()).expect("digits");
        (answer.status, id)
    }

    async fn next(&mut self) -> Pdu {
        match self.framed.next().await.expect("readable") {
            Some(Frame::Ok(pdu)) => pdu,
            other => panic!("{other:?}"),
        }
    }

    /// The next receipt, answered with a status: the ID in its text, and the state and error in its TLVs.
    async fn receipt(&mut self, answer: Status) -> (String, Option<u8>, Option<u16>) {
        let pdu = self.next().await;
        let Body::DeliverSm(message) = pdu.body else {
            panic!("{pdu:?}")
        };
        let resp = Body::DeliverSmResp(smpp::MessageResp::default());
        let resp = Pdu::with_status(answer, pdu.sequence, resp);
        self.framed.send(&resp).await.expect("open");
        let text = String::from_utf8(message.short_message.to_vec()).expect("ASCII");
        let id = text.split(' ').next().and_then(|id| id.strip_prefix("id:"));
        let error = message.tlvs.network_error_code().map(|error| error.code);
        (
            id.expect("an ID").to_owned(),
            message.tlvs.message_state(),
            error,
        )
    }
}

#[tokio::test]
async fn a_message_is_accepted_and_its_receipt_delivered() {
    let mut client = Client::connect(start(SmscSettings::default()).await).await;
    assert_eq!(
        client.submit("37120000001").await.0,
        Status::ESME_RINVBNDSTS
    );
    assert_eq!(client.bind(BindKind::Transceiver, "").await, Status::OK);
    let (status, id) = client.submit("37120000001").await;
    assert_eq!(status, Status::OK);
    assert_eq!(client.receipt(Status::OK).await, (id, Some(2), None));
    let (_, id) = client.submit("447700900043").await;
    assert_eq!(client.receipt(Status::OK).await, (id, Some(5), Some(6)));
    assert_eq!(client.ask(Body::Unbind).await.body, Body::UnbindResp);
    assert!(
        client.framed.next().await.expect("readable").is_none(),
        "closed"
    );
}

#[tokio::test]
async fn refusals_say_why() {
    let mut client = Client::connect(start(SmscSettings::default()).await).await;
    client.bind(BindKind::Transmitter, "").await;
    for (to, status) in [
        ("447700900053", Status::ESME_RINVDSTADR),
        ("447700900061", Status::ESME_RINVMSGLEN),
        ("447700900031", Status::ESME_RMSGQFUL),
        ("447700900025", Status(0x419)),
        ("nobody", Status::ESME_RINVDSTADR),
    ] {
        assert_eq!(client.submit(to).await, (status, String::new()), "{to}");
    }
    let code = Code::new(53).expect("in the catalogue");
    assert_eq!(receipts::status_for(code), Status::ESME_RINVDSTADR);
}

#[tokio::test]
async fn only_those_it_knows_may_bind() {
    let settings = SmscSettings {
        credentials: Some(("me".to_owned(), "right".to_owned())),
        ..SmscSettings::default()
    };
    let address = start(settings).await;
    let mut client = Client::connect(address).await;
    let status = client.bind(BindKind::Transceiver, "wrong").await;
    assert_eq!(status, Status::ESME_RINVPASWD);
    let mut client = Client::connect(address).await;
    let status = client.bind(BindKind::Transceiver, "right").await;
    assert_eq!(status, Status::OK);
    let status = client.bind(BindKind::Transceiver, "right").await;
    assert_eq!(status, Status::ESME_RALYBND);
}

#[tokio::test]
async fn a_receipt_waits_until_a_client_takes_it() {
    let settings = SmscSettings {
        ids: Ids::HexThenDecimal,
        ..SmscSettings::default()
    };
    let address = start(settings).await;
    let mut sender = Client::connect(address).await;
    sender.bind(BindKind::Transmitter, "").await;
    let (_, id) = sender.submit("37120000001").await;
    let id = u64::from_str_radix(&id, 16)
        .expect("hexadecimal")
        .to_string();
    let mut first = Client::connect(address).await;
    first.bind(BindKind::Receiver, "").await;
    // Refused, so it is sent again.
    assert_eq!(first.receipt(Status::ESME_RX_T_APPN).await.0, id);
    assert_eq!(first.next().await.body.command(), smpp::command::DELIVER_SM);
    // Not answered before the connection ends, so the next connection gets it.
    drop(first);
    let mut second = Client::connect(address).await;
    second.bind(BindKind::Receiver, "").await;
    assert_eq!(second.receipt(Status::OK).await.0, id);
}

#[tokio::test]
async fn more_than_it_takes_in_a_second_is_throttled() {
    let settings = SmscSettings {
        most_per_second: Some(1),
        ..SmscSettings::default()
    };
    let mut client = Client::connect(start(settings).await).await;
    client.bind(BindKind::Transmitter, "").await;
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(client.submit("37120000001").await.0);
    }
    assert!(statuses.contains(&Status::OK));
    assert!(statuses.contains(&Status::ESME_RTHROTTLED));
}
