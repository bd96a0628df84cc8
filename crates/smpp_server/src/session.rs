//! One connection: it binds, and then requests and answers go both ways until it ends.

mod bound;
mod flush;
mod silence;

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use domain::smpp_user::{self, ReceiptId};
use engine::identity::smpp_users::{BindRefused, FollowedUser, SignInRefused};
use engine::identity::throttle::network;
use smpp::{
    Bind, BindKind, BindResp, Body, DEFAULT_MAX_PDU, Decoder, Frame, Framed, Pdu, ReadError,
    Status, Tlvs, command, tag,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::activity::Peer;
use crate::outgoing::Outgoing;
use crate::requests::refuse;
use crate::server::SmppServer;
use crate::sessions::{BoundSession, NewSession};
use bound::Bound;

/// The name of this side in answers to a bind.
const SYSTEM_ID: &[u8] = b"switchboard";
const INTERFACE_VERSION: u8 = 0x34;
/// The longest PDU before a bind, so that strangers cost little memory.
const MAX_PDU_BEFORE_BIND: usize = 1024;

/// Why a connection ends.
pub(crate) type Why = &'static str;

/// A connection with a limit on the time of writes.
pub(crate) struct Connection<S> {
    pub(crate) framed: Framed<S>,
    write_time: Duration,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Adds a PDU to what is written next, and returns its length.
    pub(crate) fn queue(&mut self, pdu: &Pdu) -> Result<usize, Why> {
        let before = self.framed.queued();
        self.framed.queue(pdu).map_err(|error| {
            tracing::error!(%error, "a PDU of the SMPP server cannot be encoded");
            "a PDU could not be encoded"
        })?;
        Ok(self.framed.queued() - before)
    }

    pub(crate) async fn flush(&mut self) -> Result<(), Why> {
        match timeout(self.write_time, self.framed.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("writing failed"),
            Err(_) => Err("the client did not read"),
        }
    }

    /// Writes a PDU, and returns its length.
    async fn answer(&mut self, pdu: &Pdu) -> Result<usize, Why> {
        let octets = self.queue(pdu)?;
        self.flush().await?;
        Ok(octets)
    }

    /// Tells the client that its octets cannot be read, if it still listens.
    pub(crate) async fn refuse_length(&mut self) {
        let nack = Pdu::with_status(Status::ESME_RINVCMDLEN, 0, Body::GenericNack);
        // The connection ends anyway.
        let _ = self.answer(&nack).await;
    }
}

/// The next frame, or why there is none.
pub(crate) fn read_frame(read: Result<Option<Frame>, ReadError>) -> Result<Frame, Why> {
    match read {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err("the client closed the connection"),
        Err(ReadError::Length(_)) => Err(BAD_LENGTH),
        Err(ReadError::Io(error)) => Err(match error.kind() {
            io::ErrorKind::ConnectionReset => "the client reset the connection",
            _ => "reading failed",
        }),
    }
}

/// The length of a PDU cannot be right.
pub(crate) const BAD_LENGTH: Why = "a PDU had an impossible length";

/// Serves a connection until it ends.
pub(crate) async fn serve<S>(
    server: Arc<SmppServer>,
    stream: S,
    peer: Peer,
    bind_until: Instant,
) -> Why
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut connection = Connection {
        framed: Framed::new(stream, Decoder::new(MAX_PDU_BEFORE_BIND)),
        write_time: server.settings.write_time,
    };
    let mut ending = server.ending.clone();
    let binding = timeout_at(bind_until, bind(&server, &mut connection, peer));
    let bound = tokio::select! {
        bound = binding => bound.unwrap_or(Err("it did not bind in time")),
        () = ending.begun() => Err("the service stops"),
    };
    match bound {
        Ok(client) => {
            connection.framed.set_max_pdu(DEFAULT_MAX_PDU);
            Bound::new(server, connection, client).run().await
        }
        Err(why) => {
            if why == BAD_LENGTH {
                connection.refuse_length().await;
            }
            why
        }
    }
}

/// A client that has bound.
pub(crate) struct Client {
    pub(crate) user: FollowedUser,
    pub(crate) kind: smpp_user::BindKind,
    pub(crate) peer: Peer,
    pub(crate) session: BoundSession,
    pub(crate) outgoing: mpsc::Receiver<Outgoing>,
}

/// Waits for the client's bind and answers it.
async fn bind<S>(
    server: &Arc<SmppServer>,
    connection: &mut Connection<S>,
    peer: Peer,
) -> Result<Client, Why>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let pdu = match read_frame(connection.framed.next().await)? {
            Frame::Ok(pdu) => pdu,
            Frame::Bad {
                command,
                sequence,
                why,
            } => {
                if !command::is_response(command) {
                    let refusal = refuse(command, sequence, why.status());
                    connection.answer(&refusal).await?;
                }
                continue;
            }
        };
        let sequence = pdu.sequence;
        let request = pdu.body.command();
        match pdu.body {
            Body::Bind(kind, bind) => {
                let octets = connection.framed.frame_octets();
                let admitted = admit(server, kind, &bind, peer).await;
                count(admitted.as_ref().err());
                if let Ok(client) = &admitted {
                    let now = server.engine.now();
                    let activity = client.session.activity();
                    activity.received_bind(request, sequence, octets, now);
                }
                let (status, resp) = match &admitted {
                    Ok(_) => (Status::OK, welcome(&bind)),
                    Err(status) => (*status, BindResp::default()),
                };
                let answer = bind_answer(kind, status, sequence, resp);
                let octets = connection.answer(&answer).await?;
                if let Ok(client) = &admitted {
                    let now = server.engine.now();
                    let activity = client.session.activity();
                    activity.sent(&answer, octets, ReceiptId::default(), now);
                }
                return admitted.map_err(|_| "the bind was refused");
            }
            Body::EnquireLink => {
                let answer = Pdu::new(sequence, Body::EnquireLinkResp);
                connection.answer(&answer).await?;
            }
            Body::Unbind => {
                let answer = Pdu::new(sequence, Body::UnbindResp);
                connection.answer(&answer).await?;
                return Err("the client unbound");
            }
            _ if command::is_response(request) => {}
            _ => {
                let refusal = refuse(request, sequence, Status::ESME_RINVBNDSTS);
                connection.answer(&refusal).await?;
            }
        }
    }
}

fn bind_answer(kind: BindKind, status: Status, sequence: u32, resp: BindResp) -> Pdu {
    Pdu::with_status(status, sequence, Body::BindResp(kind, resp))
}

/// The body of a successful bind response. SMPP 3.3 has no optional parameters.
fn welcome(bind: &Bind) -> BindResp {
    let mut tlvs = Tlvs::new();
    if bind.interface_version >= INTERFACE_VERSION {
        tlvs.push_u8(tag::SC_INTERFACE_VERSION, INTERFACE_VERSION);
    }
    BindResp {
        system_id: SYSTEM_ID.into(),
        tlvs,
    }
}

/// Checks the password and the limits of the user, and registers the session.
async fn admit(
    server: &Arc<SmppServer>,
    kind: BindKind,
    bind: &Bind,
    peer: Peer,
) -> Result<Client, Status> {
    let (Ok(system_id), Ok(password)) = (
        std::str::from_utf8(&bind.system_id),
        std::str::from_utf8(&bind.password),
    ) else {
        return Err(Status::ESME_RINVPASWD);
    };
    let users = &server.engine.smpp_users;
    let user = users.sign_in(system_id, password, peer.address).await;
    let user = user.map_err(|refused| {
        let system_id = match refused {
            // It may be a password in the wrong field.
            SignInRefused::UnknownSystemId | SignInRefused::Slowed | SignInRefused::Busy => None,
            _ => Some(system_id),
        };
        refuse_bind(server, system_id, peer, &refused)
    })?;
    let kind = match kind {
        BindKind::Transmitter => smpp_user::BindKind::Transmitter,
        BindKind::Receiver => smpp_user::BindKind::Receiver,
        BindKind::Transceiver => smpp_user::BindKind::Transceiver,
    };
    if !user.may_bind(kind, peer.address) {
        let why = "the user may not make this kind of bind";
        log_refused(server, Some(system_id), peer, &why);
        return Err(Status::ESME_RBINDFAIL);
    }
    let counted = users.bind(&user, kind).await;
    let counted = counted.map_err(|refused| match refused {
        BindRefused::TooMany => {
            log_refused(server, Some(system_id), peer, &refused);
            Status::ESME_RBINDFAIL
        }
        BindRefused::Store(error) => {
            tracing::warn!(%error, "a session of an SMPP user could not be counted");
            Status::ESME_RSYSERR
        }
    })?;
    let followed = users.follow(&user);
    let bound = NewSession {
        user,
        followed: followed.clone(),
        kind,
        peer,
        now: server.engine.now(),
    };
    let (session, outgoing) = server.sessions.bind(bound, counted);
    Ok(Client {
        user: followed,
        kind,
        peer,
        session,
        outgoing,
    })
}

/// Counts a bind by its result.
fn count(refused: Option<&Status>) {
    let result = match refused {
        None => "bound",
        Some(&Status::ESME_RTHROTTLED) => "slowed",
        Some(&Status::ESME_RSYSERR) => "failed",
        Some(_) => "refused",
    };
    metrics::counter!("switchboard_smpp_binds_total", "result" => result).increment(1);
}

/// What a bind that is refused is answered with.
fn refuse_bind(
    server: &SmppServer,
    system_id: Option<&str>,
    peer: Peer,
    refused: &SignInRefused,
) -> Status {
    let status = match refused {
        SignInRefused::UnknownSystemId
        | SignInRefused::WrongPassword
        | SignInRefused::NotAllowedFrom => Status::ESME_RINVPASWD,
        SignInRefused::AccountSuspended => Status::ESME_RBINDFAIL,
        SignInRefused::Slowed | SignInRefused::Busy => Status::ESME_RTHROTTLED,
        SignInRefused::StoreAway(error) => {
            tracing::warn!(%error, "an SMPP user could not be read");
            return Status::ESME_RSYSERR;
        }
    };
    log_refused(server, system_id, peer, refused);
    status
}

/// Tells the operator more than the client learns: each reason once a second for an address.
fn log_refused(server: &SmppServer, system_id: Option<&str>, peer: Peer, why: &dyn Display) {
    let key = (network(peer.address), why.to_string());
    let (refusals, elapsed) = (&server.refused_binds, server.started.elapsed());
    if !refusals.count(key, 1, elapsed).is_exceeded {
        tracing::info!(system_id, address = %peer.address, "an SMPP bind was refused: {why}");
    }
}
