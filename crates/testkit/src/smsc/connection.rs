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
use super::{Action, Answer, BindAction, BindKind, BindRequest, BoundConnection, Shared};

const MAX_QUEUED_COMMANDS: usize = 4096;

/// A command for the task that writes to a connection.
pub(super) enum WriterCommand {
    /// Sends these octets.
    Write(Vec<u8>),
    /// Closes the connection.
    Close,
}

/// What the tasks of a connection share.
struct Connection {
    number: usize,
    shared: Arc<Shared>,
    writer: mpsc::Sender<WriterCommand>,
    is_silent: AtomicBool,
}

/// Serves a connection until either side closes it.
pub(super) async fn serve(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    stream.set_nodelay(true).expect("a TCP socket");
    let (reading, writing) = stream.into_split();
    let (writer, commands) = mpsc::channel(MAX_QUEUED_COMMANDS);
    let connection = Arc::new(Connection {
        number,
        shared: shared.clone(),
        writer,
        is_silent: AtomicBool::new(false),
    });
    tokio::select! {
        _end = connection.read_all(reading) => {}
        _end = write_all(writing, commands, shared.one_octet_at_a_time) => {}
    }
    shared.bound().retain(|bound| bound.number != number);
    shared.update_log(|log| log.closed += 1);
}

async fn write_all(
    mut writing: OwnedWriteHalf,
    mut commands: mpsc::Receiver<WriterCommand>,
    one_octet_at_a_time: bool,
) -> io::Result<()> {
    while let Some(WriterCommand::Write(octets)) = commands.recv().await {
        if one_octet_at_a_time {
            for octet in octets {
                writing.write_all(&[octet]).await?;
                // Lets the client read this octet alone.
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
                self.handle(pdu).await?;
            }
        }
        Ok(())
    }

    async fn handle(self: &Arc<Self>, pdu: Pdu) -> io::Result<()> {
        match pdu.command {
            octets::BIND_RECEIVER => self.bind(&pdu, BindKind::Receiver).await?,
            octets::BIND_TRANSMITTER => self.bind(&pdu, BindKind::Transmitter).await?,
            octets::BIND_TRANSCEIVER => self.bind(&pdu, BindKind::Transceiver).await?,
            octets::SUBMIT_SM => {
                let submit = Submit::read(pdu, self.number, Instant::now())?;
                let (submit, actions) = self.shared.receive(submit);
                tokio::spawn(self.clone().perform(submit, actions));
            }
            octets::ENQUIRE_LINK => self.answer(&pdu, 0, &[]).await,
            octets::UNBIND => {
                // Logged before the answer, because a test may read the log or bind again right after it.
                self.shared
                    .bound()
                    .retain(|bound| bound.number != self.number);
                self.shared.update_log(|log| log.unbinds += 1);
                self.answer(&pdu, 0, &[]).await;
                self.command(WriterCommand::Close).await;
            }
            command if command & ANSWER != 0 => self.log_answer(&pdu),
            _ => {
                self.shared.update_log(|log| log.unknown += 1);
                let nack = octets::pdu(
                    octets::GENERIC_NACK,
                    octets::UNKNOWN_COMMAND,
                    pdu.sequence,
                    &[],
                );
                self.command(WriterCommand::Write(nack)).await;
            }
        }
        Ok(())
    }

    fn log_answer(&self, pdu: &Pdu) {
        let answer = Answer {
            connection: self.number,
            sequence: pdu.sequence,
            status: pdu.status,
        };
        if pdu.command == octets::DELIVER_SM | ANSWER {
            self.shared.update_log(|log| log.answers.push(answer));
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
        self.shared.update_log(|log| {
            request.number = log.binds.len();
            log.binds.push(request.clone());
        });
        let action = match &self.shared.on_bind {
            Some(script) => script(&request),
            None => BindAction::Accept,
        };
        match action {
            BindAction::Accept => {
                self.answer(pdu, 0, &c_string("smsc")).await;
                let connection = BoundConnection {
                    number: self.number,
                    kind,
                    writer: self.writer.clone(),
                };
                let count = {
                    let mut bound = self.shared.bound();
                    bound.push(connection);
                    bound.len()
                };
                self.shared
                    .update_log(|log| log.most_bound = log.most_bound.max(count));
            }
            BindAction::Refuse(status) => self.answer(pdu, status, &[]).await,
            BindAction::Ignore => {}
            BindAction::HangUp => self.command(WriterCommand::Close).await,
            BindAction::Octets(octets) => self.command(WriterCommand::Write(octets)).await,
        }
        Ok(())
    }

    async fn answer(&self, to: &Pdu, status: u32, body: &[u8]) {
        let octets = pdu(to.command | ANSWER, status, to.sequence, body);
        self.command(WriterCommand::Write(octets)).await;
    }

    /// Has no effect after the connection has ended.
    async fn command(&self, command: WriterCommand) {
        let _ended = self.writer.send(command).await;
    }

    async fn perform(self: Arc<Self>, submit: Submit, actions: Vec<Action>) {
        for action in actions {
            if self.is_silent.load(Ordering::Relaxed) {
                return;
            }
            match action {
                Action::Answer => {
                    self.command(WriterCommand::Write(self.accepted(&submit)))
                        .await;
                }
                Action::Refuse(status) => {
                    let octets = pdu(octets::SUBMIT_SM | ANSWER, status, submit.sequence, &[]);
                    self.command(WriterCommand::Write(octets)).await;
                }
                Action::Receipt(receipt) => {
                    let receipt = receipt.with_default_source(&submit.destination.2);
                    let octets = receipt.to_pdu(self.shared.next_sequence());
                    self.command(WriterCommand::Write(octets)).await;
                }
                Action::ReceiptOnOtherConnection(receipt) => {
                    let receipt = receipt.with_default_source(&submit.destination.2);
                    let octets = receipt.to_pdu(self.shared.next_sequence());
                    let other = self.other_receiver();
                    let _ended = other.send(WriterCommand::Write(octets)).await;
                }
                Action::Wait(time) => tokio::time::sleep(time).await,
                Action::WaitForSubmits(count) => {
                    let mut log = self.shared.log.subscribe();
                    let _ended = log.wait_for(|log| log.submit_count >= count).await;
                }
                Action::Octets(octets) => self.command(WriterCommand::Write(octets)).await,
                Action::HalfAnswer => {
                    let mut octets = self.accepted(&submit);
                    octets.truncate(octets.len() / 2);
                    self.command(WriterCommand::Write(octets)).await;
                }
                Action::Unbind => {
                    let octets = pdu(octets::UNBIND, 0, self.shared.next_sequence(), &[]);
                    self.command(WriterCommand::Write(octets)).await;
                }
                Action::StopAnswering => self.is_silent.store(true, Ordering::Relaxed),
                Action::HangUp => self.command(WriterCommand::Close).await,
            }
        }
    }

    fn accepted(&self, submit: &Submit) -> Vec<u8> {
        let id = c_string(&self.shared.id_format.write(submit.id()));
        pdu(octets::SUBMIT_SM | ANSWER, 0, submit.sequence, &id)
    }

    /// The writer of another connection that accepts receipts; its own if there is none.
    fn other_receiver(&self) -> mpsc::Sender<WriterCommand> {
        let bound = self.shared.bound();
        let other = bound
            .iter()
            .find(|bound| bound.number != self.number && bound.kind.receives());
        other.map_or_else(|| self.writer.clone(), |bound| bound.writer.clone())
    }
}
