//! One connection of the SMSC: a task that reads, one that writes, and one for each message.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::octets::{self, ANSWER, Pdu, Submit, c_string, pdu};
use super::{Act, Answer, BindAct, BindKind, BindRequest, Desk, Open};

/// What a connection has to do that is not yet done, at most.
const MOST_ORDERS: usize = 4096;

/// Something for a connection to do.
pub(super) enum Order {
    /// Sends these octets.
    Write(Vec<u8>),
    /// Hangs up.
    Close,
}

/// What the tasks of a connection share.
struct Connection {
    number: usize,
    desk: Arc<Desk>,
    orders: mpsc::Sender<Order>,
    is_silent: AtomicBool,
}

/// Serves a connection until either side hangs up.
pub(super) async fn serve(stream: TcpStream, number: usize, desk: Arc<Desk>) {
    stream.set_nodelay(true).expect("a TCP socket");
    let (reading, writing) = stream.into_split();
    let (orders, ordered) = mpsc::channel(MOST_ORDERS);
    let connection = Arc::new(Connection {
        number,
        desk: desk.clone(),
        orders,
        is_silent: AtomicBool::new(false),
    });
    tokio::select! {
        _end = connection.read_all(reading) => {}
        _end = write_all(writing, ordered, desk.drip) => {}
    }
    desk.open().retain(|open| open.connection != number);
    desk.note(|seen| seen.closed += 1);
}

async fn write_all(
    mut writing: OwnedWriteHalf,
    mut ordered: mpsc::Receiver<Order>,
    drip: bool,
) -> io::Result<()> {
    while let Some(Order::Write(octets)) = ordered.recv().await {
        if drip {
            for octet in octets {
                writing.write_all(&[octet]).await?;
                // Lets the other side read this octet alone.
                tokio::task::yield_now().await;
            }
        } else {
            writing.write_all(&octets).await?;
        }
    }
    Ok(())
}

impl Connection {
    async fn read_all(self: &Arc<Self>, mut reading: OwnedReadHalf) -> io::Result<()> {
        while let Some(pdu) = Pdu::read(&mut reading).await? {
            if !self.is_silent.load(Ordering::Relaxed) {
                self.take(pdu).await?;
            }
        }
        Ok(())
    }

    async fn take(self: &Arc<Self>, pdu: Pdu) -> io::Result<()> {
        match pdu.command {
            octets::BIND_RECEIVER => self.bind(&pdu, BindKind::Receiver).await?,
            octets::BIND_TRANSMITTER => self.bind(&pdu, BindKind::Transmitter).await?,
            octets::BIND_TRANSCEIVER => self.bind(&pdu, BindKind::Transceiver).await?,
            octets::SUBMIT_SM => {
                let submit = Submit::read(pdu, self.number, Instant::now())?;
                let (submit, acts) = self.desk.take(submit);
                tokio::spawn(self.clone().act(submit, acts));
            }
            octets::ENQUIRE_LINK => self.answer(&pdu, 0, &[]).await,
            octets::UNBIND => {
                // Noted first: who has the answer may look at once, or bind again.
                self.desk
                    .open()
                    .retain(|open| open.connection != self.number);
                self.desk.note(|seen| seen.unbinds += 1);
                self.answer(&pdu, 0, &[]).await;
                self.order(Order::Close).await;
            }
            command if command & ANSWER != 0 => self.note_answer(&pdu),
            _ => {
                self.desk.note(|seen| seen.unknown += 1);
                let nack = octets::pdu(
                    octets::GENERIC_NACK,
                    octets::UNKNOWN_COMMAND,
                    pdu.sequence,
                    &[],
                );
                self.order(Order::Write(nack)).await;
            }
        }
        Ok(())
    }

    fn note_answer(&self, pdu: &Pdu) {
        let answer = Answer {
            connection: self.number,
            sequence: pdu.sequence,
            status: pdu.status,
        };
        if pdu.command == octets::DELIVER_SM | ANSWER {
            self.desk.note(|seen| seen.answers.push(answer));
        }
    }

    async fn bind(&self, pdu: &Pdu, kind: BindKind) -> io::Result<()> {
        let mut fields = pdu.fields();
        let mut request = BindRequest {
            number: 0,
            connection: self.number,
            kind,
            system_id: fields.string()?,
            password: fields.string()?,
            system_type: fields.string()?,
            interface_version: fields.octet()?,
        };
        self.desk.note(|seen| {
            request.number = seen.binds.len();
            seen.binds.push(request.clone());
        });
        let act = match &self.desk.on_bind {
            Some(script) => script(&request),
            None => BindAct::Accept,
        };
        match act {
            BindAct::Accept => {
                self.answer(pdu, 0, &c_string("smsc")).await;
                let open = Open {
                    connection: self.number,
                    kind,
                    orders: self.orders.clone(),
                };
                let bound = {
                    let mut all = self.desk.open();
                    all.push(open);
                    all.len()
                };
                self.desk
                    .note(|seen| seen.most_bound = seen.most_bound.max(bound));
            }
            BindAct::Refuse(status) => self.answer(pdu, status, &[]).await,
            BindAct::Ignore => {}
            BindAct::HangUp => self.order(Order::Close).await,
            BindAct::Octets(octets) => self.order(Order::Write(octets)).await,
        }
        Ok(())
    }

    async fn answer(&self, to: &Pdu, status: u32, body: &[u8]) {
        let octets = pdu(to.command | ANSWER, status, to.sequence, body);
        self.order(Order::Write(octets)).await;
    }

    /// An order to a connection that has ended has no effect.
    async fn order(&self, order: Order) {
        let _ended = self.orders.send(order).await;
    }

    async fn act(self: Arc<Self>, submit: Submit, acts: Vec<Act>) {
        for act in acts {
            if self.is_silent.load(Ordering::Relaxed) {
                return;
            }
            match act {
                Act::Answer => self.order(Order::Write(self.taken(&submit))).await,
                Act::Refuse(status) => {
                    let octets = pdu(octets::SUBMIT_SM | ANSWER, status, submit.sequence, &[]);
                    self.order(Order::Write(octets)).await;
                }
                Act::Receipt(receipt) => {
                    let receipt = receipt.or_from(&submit.destination.2);
                    let octets = receipt.to_pdu(self.desk.next_sequence());
                    self.order(Order::Write(octets)).await;
                }
                Act::ReceiptElsewhere(receipt) => {
                    let receipt = receipt.or_from(&submit.destination.2);
                    let octets = receipt.to_pdu(self.desk.next_sequence());
                    let other = self.another();
                    let _ended = other.send(Order::Write(octets)).await;
                }
                Act::Wait(time) => tokio::time::sleep(time).await,
                Act::AfterSubmits(count) => {
                    let mut seen = self.desk.seen.subscribe();
                    let _ended = seen.wait_for(|seen| seen.taken >= count).await;
                }
                Act::Octets(octets) => self.order(Order::Write(octets)).await,
                Act::HalfAnswer => {
                    let mut octets = self.taken(&submit);
                    octets.truncate(octets.len() / 2);
                    self.order(Order::Write(octets)).await;
                }
                Act::Unbind => {
                    let octets = pdu(octets::UNBIND, 0, self.desk.next_sequence(), &[]);
                    self.order(Order::Write(octets)).await;
                }
                Act::FallSilent => self.is_silent.store(true, Ordering::Relaxed),
                Act::HangUp => self.order(Order::Close).await,
            }
        }
    }

    fn taken(&self, submit: &Submit) -> Vec<u8> {
        let id = c_string(&self.desk.ids.write(submit.id()));
        pdu(octets::SUBMIT_SM | ANSWER, 0, submit.sequence, &id)
    }

    /// The orders of another connection that takes receipts; its own when there is none.
    fn another(&self) -> mpsc::Sender<Order> {
        let open = self.desk.open();
        let other = open
            .iter()
            .find(|open| open.connection != self.number && open.kind.receives());
        other.map_or_else(|| self.orders.clone(), |open| open.orders.clone())
    }
}
