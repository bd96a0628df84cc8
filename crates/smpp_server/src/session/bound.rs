//! A bound session.

use std::sync::Arc;
use std::time::Duration;

use domain::kill_point::{KillPoint, pass};
use domain::smpp_user::{BindKind, ReceiptId, SmppUser};
use engine::identity::smpp_users::FollowedUser;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::StreamExt as _;
use smpp::{BindResp, Body, Frame, Pdu, Status, command};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::flush::{Answers, flush_and_answer};
use super::silence::{Silence, Silent};
use super::{BAD_LENGTH, Client, Connection, Why, read_frame};
use crate::activity::Peer;
use crate::outgoing::{Answer, Outgoing, Unanswered};
use crate::requests::{self, Submit, refuse};
use crate::server::{Ending, SmppServer};
use crate::sessions::BoundSession;

/// How long a client has to answer `unbind`.
const UNBIND_TIME: Duration = Duration::from_secs(5);
const LAST_SEQUENCE: u32 = 0x7FFF_FFFF;

/// What a session does next.
enum Event {
    Read(Result<Frame, Why>),
    Answer(Pdu),
    Deliver(Outgoing),
    Timer,
    UserChanged,
    Leave,
}

pub(super) struct Bound<S> {
    server: Arc<SmppServer>,
    connection: Connection<S>,
    kind: BindKind,
    peer: Peer,
    user: FollowedUser,
    ending: Ending,
    /// Ends the bind when the session ends, before its unanswered deliveries are dropped.
    session: BoundSession,
    outgoing: mpsc::Receiver<Outgoing>,
    /// Requests of the client that are being answered.
    answers: Answers,
    unanswered: Unanswered,
    sequence: u32,
    silence: Silence,
    /// `unbind` was sent; the connection closes at this time at the latest.
    close_at: Option<Instant>,
    /// The client has unbound: answer what is under way and close.
    unbound: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Bound<S> {
    pub(super) fn new(server: Arc<SmppServer>, connection: Connection<S>, client: Client) -> Self {
        Self {
            user: client.user,
            ending: server.ending.clone(),
            server,
            connection,
            kind: client.kind,
            peer: client.peer,
            session: client.session,
            outgoing: client.outgoing,
            answers: Answers::new(),
            unanswered: Unanswered::default(),
            sequence: 0,
            silence: Silence::new(),
            close_at: None,
            unbound: false,
        }
    }

    /// Serves the session until it ends.
    pub(super) async fn run(mut self) -> Why {
        let why = loop {
            if let Err(why) = self.step().await {
                break why;
            }
        };
        // Nobody reads these answers. Requests that are not polled must not keep a connection to the database.
        self.answers.clear();
        if why == BAD_LENGTH {
            self.connection.refuse_length().await;
        }
        // From here on this node counts as not bound, so that unanswered deliveries go to the user's next session.
        drop(self.session);
        why
    }

    async fn step(&mut self) -> Result<(), Why> {
        if self.close_at.is_none() && !may_stay(&self.user, self.kind, self.peer) {
            self.unbind()?;
            self.flush().await?;
        }
        let event = self.next_event().await;
        self.handle(event)?;
        self.handle_ready()?;
        let activity = self.session.activity();
        activity.set_open(self.answers.len(), self.unanswered.len());
        self.flush().await?;
        if self.unbound && self.answers.is_empty() {
            return Err("unbound");
        }
        Ok(())
    }

    /// How the user wants message IDs at the moment.
    fn id_format(&self) -> ReceiptId {
        let user = self.user.borrow();
        user.as_ref()
            .map(|user| user.receipts.id)
            .unwrap_or_default()
    }

    /// Adds a PDU to what is written next.
    fn queue(&mut self, pdu: &Pdu) -> Result<(), Why> {
        let octets = self.connection.queue(pdu)?;
        let (form, now) = (self.id_format(), self.server.engine.now());
        self.session.activity().sent(pdu, octets, form, now);
        Ok(())
    }

    /// Writes what is queued, and the answers that become ready meanwhile. There are no more of those than the window
    /// has, because nothing is read. A client that must leave has no more time than any other.
    async fn flush(&mut self) -> Result<(), Why> {
        while self.connection.framed.queued() > 0 {
            let is_ending = self.is_ending();
            let mut ready = Vec::new();
            let must_leave = tokio::select! {
                biased;
                flushed = flush_and_answer(&mut self.connection, &mut self.answers, &mut ready) => {
                    flushed?;
                    false
                }
                () = left(&mut self.user, self.kind, self.peer, &mut self.ending), if !is_ending => true,
                () = sleep_until(self.close_at.unwrap_or_else(Instant::now)), if self.close_at.is_some() => {
                    return Err("the client did not read");
                }
            };
            for answer in &ready {
                self.queue(answer)?;
            }
            if must_leave {
                self.unbind()?;
            }
        }
        Ok(())
    }

    /// Whether the session takes no more messages to the client.
    fn is_ending(&self) -> bool {
        self.close_at.is_some() || self.unbound
    }

    async fn next_event(&mut self) -> Event {
        let has_room = self.answers.len() < self.server.settings.window && !self.unbound;
        let is_ending = self.is_ending();
        let timer = self.close_at.unwrap_or(self.silence.ends_at());
        tokio::select! {
            read = self.connection.framed.next(), if has_room => Event::Read(read_frame(read)),
            Some(answer) = self.answers.next(), if !self.answers.is_empty() => Event::Answer(answer),
            Some(outgoing) = self.outgoing.recv(), if !is_ending => Event::Deliver(outgoing),
            changed = self.user.changed(), if !is_ending => match changed {
                Ok(()) => Event::UserChanged,
                Err(_) => Event::Leave,
            },
            () = self.ending.begun(), if !is_ending => Event::Leave,
            () = sleep_until(timer) => Event::Timer,
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Why> {
        match event {
            Event::Read(frame) => self.receive(frame?),
            Event::Answer(pdu) => self.queue(&pdu),
            Event::Deliver(outgoing) => {
                self.deliver(outgoing);
                Ok(())
            }
            Event::Timer => self.tick(),
            // A user that may not have the session any more is noticed before the next event.
            Event::UserChanged => Ok(()),
            Event::Leave => self.unbind(),
        }
    }

    /// Handles what needs no waiting, so that many PDUs are written at once.
    fn handle_ready(&mut self) -> Result<(), Why> {
        while let Some(Some(pdu)) = self.answers.next().now_or_never() {
            self.queue(&pdu)?;
        }
        while self.answers.len() < self.server.settings.window && !self.unbound {
            match self.connection.framed.ready() {
                Ok(Some(frame)) => self.receive(frame)?,
                Ok(None) => break,
                Err(_) => return Err(BAD_LENGTH),
            }
        }
        while !self.is_ending()
            && let Ok(outgoing) = self.outgoing.try_recv()
        {
            self.deliver(outgoing);
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), Why> {
        if self.close_at.is_some() {
            return Err("the client did not answer unbind");
        }
        if self.unbound {
            return Err("answers took too long");
        }
        if self.answers.len() >= self.server.settings.window {
            self.silence.postpone();
            return Ok(());
        }
        match self.silence.end() {
            Silent::GiveUp => Err("the client was silent"),
            Silent::Ask => {
                self.unanswered.drop_expired();
                self.send(Body::EnquireLink).map(drop)
            }
        }
    }

    /// Asks the client to end the session, once.
    fn unbind(&mut self) -> Result<(), Why> {
        if !self.is_ending() {
            self.close_at = Some(Instant::now() + UNBIND_TIME);
            self.stop_receiving();
            self.send(Body::Unbind)?;
        }
        Ok(())
    }

    /// Leaves messages that the client has not got yet to other sessions.
    fn stop_receiving(&mut self) {
        self.session.stop_receiving();
        self.outgoing.close();
        while let Ok(outgoing) = self.outgoing.try_recv() {
            drop(outgoing);
        }
    }

    fn deliver(&mut self, outgoing: Outgoing) {
        let Outgoing { message, answered } = outgoing;
        if !answered.is_awaited() {
            return;
        }
        // What cannot be encoded ends no session.
        match self.send(Body::DeliverSm(Box::new(message))) {
            Ok(sequence) => {
                self.unanswered.insert(sequence, answered);
            }
            Err(_) => answered.answer(Answer::Unwritable),
        }
    }

    /// Writes a request and returns its number.
    fn send(&mut self, body: Body) -> Result<u32, Why> {
        self.sequence = self.sequence % LAST_SEQUENCE + 1;
        self.queue(&Pdu::new(self.sequence, body))?;
        Ok(self.sequence)
    }

    fn receive(&mut self, frame: Frame) -> Result<(), Why> {
        self.silence.interrupt();
        let octets = self.connection.framed.frame_octets();
        let (form, now) = (self.id_format(), self.server.engine.now());
        self.session.activity().received(&frame, octets, form, now);
        let pdu = match frame {
            Frame::Ok(pdu) => pdu,
            Frame::Bad {
                command,
                sequence,
                why,
            } => {
                return if command::is_response(command) {
                    Ok(())
                } else {
                    let refusal = refuse(command, sequence, why.status());
                    self.queue(&refusal)
                };
            }
        };
        let (sequence, status) = (pdu.sequence, pdu.status);
        match pdu.body {
            Body::EnquireLink => {
                let answer = Pdu::new(sequence, Body::EnquireLinkResp);
                self.queue(&answer)
            }
            Body::Unbind => {
                self.unbound = true;
                self.stop_receiving();
                self.queue(&Pdu::new(sequence, Body::UnbindResp))
            }
            Body::UnbindResp if self.close_at.is_some() => {
                self.unbound = true;
                self.close_at = None;
                Ok(())
            }
            Body::DeliverSmResp(_) => {
                self.settle(sequence, status);
                Ok(())
            }
            Body::GenericNack => {
                let refused = if status.is_ok() {
                    Status::ESME_RUNKNOWNERR
                } else {
                    status
                };
                self.settle(sequence, refused);
                Ok(())
            }
            body if command::is_response(body.command()) => Ok(()),
            body => self.request(sequence, body),
        }
    }

    fn settle(&mut self, sequence: u32, status: Status) {
        if let Some(answered) = self.unanswered.take(sequence) {
            if status.is_ok() {
                pass(KillPoint::SmppReceiptAccepted);
            }
            self.session.activity().settled(status);
            answered.answer(Answer::Status(status));
        }
    }

    /// Starts to answer a request.
    fn request(&mut self, sequence: u32, body: Body) -> Result<(), Why> {
        let request = body.command();
        let refusal = match &body {
            Body::Bind(kind, _) => {
                let (status, resp) = (Status::ESME_RALYBND, BindResp::default());
                let answer = super::bind_answer(*kind, status, sequence, resp);
                return self.queue(&answer);
            }
            Body::SubmitSm(_)
            | Body::SubmitMulti(_)
            | Body::DataSm(_)
            | Body::QuerySm(_)
            | Body::CancelSm(_)
            | Body::ReplaceSm(_) => {
                if self.kind == BindKind::Receiver {
                    Some(Status::ESME_RINVBNDSTS)
                } else if self.close_at.is_some() {
                    Some(Status::ESME_RSYSERR)
                } else {
                    None
                }
            }
            _ => Some(Status::ESME_RINVCMDID),
        };
        let user = self.user.borrow().clone();
        let (None, Some(user)) = (refusal, user) else {
            let status = refusal.unwrap_or(Status::ESME_RINVBNDSTS);
            return self.queue(&refuse(request, sequence, status));
        };
        self.answers.push(self.answer(sequence, body, user));
        Ok(())
    }

    fn answer(&self, sequence: u32, body: Body, user: Arc<SmppUser>) -> BoxFuture<'static, Pdu> {
        let server = self.server.clone();
        match body {
            Body::SubmitSm(message) => {
                let message = Submit::SubmitSm(message);
                requests::submit(server, user, sequence, message).boxed()
            }
            Body::DataSm(data) => {
                requests::submit(server, user, sequence, Submit::DataSm(data)).boxed()
            }
            Body::SubmitMulti(multi) => {
                requests::submit_multi(server, user, sequence, multi).boxed()
            }
            Body::QuerySm(query) => requests::query(server, user, sequence, query).boxed(),
            Body::CancelSm(cancel) => requests::cancel(server, user, sequence, cancel).boxed(),
            Body::ReplaceSm(replace) => requests::replace(server, user, sequence, replace).boxed(),
            other => {
                let refusal = refuse(other.command(), sequence, Status::ESME_RINVCMDID);
                std::future::ready(refusal).boxed()
            }
        }
    }
}

/// Whether the user is not revoked, and may still have this session.
fn may_stay(user: &FollowedUser, kind: BindKind, peer: Peer) -> bool {
    let user = user.borrow();
    user.as_ref()
        .is_some_and(|user| user.may_bind(kind, peer.address))
}

/// Returns when the session must end.
async fn left(user: &mut FollowedUser, kind: BindKind, peer: Peer, ending: &mut Ending) {
    let revoked = async {
        while may_stay(user, kind, peer) {
            if user.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = revoked => {}
        () = ending.begun() => {}
    }
}
