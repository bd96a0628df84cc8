//! Connects and binds a session.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::link::Shared;
use super::outstanding::LAST_SEQUENCE;
use super::{Incoming, Session, SessionOptions, run};
use crate::{
    BindResp, Body, Decoder, EncodeError, FatalLength, Frame, Framed, Pdu, ReadError, Status,
    WriteError,
};

/// Why a session could not be opened.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The name was not resolved.
    #[error("cannot look up {address}")]
    Resolve {
        /// The address that was looked up.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// No address took a connection.
    #[error("cannot connect to {address}")]
    Connect {
        /// The address that was connected to.
        address: String,
        /// The error of the last address tried.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("the TLS handshake failed")]
    Tls(#[source] io::Error),
    /// The connection timed out.
    #[error("the connection timed out")]
    ConnectTimeout,
    /// The connection failed while binding.
    #[error("the connection failed while binding")]
    Io(#[source] io::Error),
    /// The SMSC closed the connection instead of answering the bind.
    #[error("the SMSC closed the connection without an answer to the bind")]
    Closed,
    /// The SMSC sent something that is not SMPP.
    #[error(transparent)]
    Length(#[from] FatalLength),
    /// The bind timed out.
    #[error("the bind timed out")]
    BindTimeout,
    /// The SMSC refused the bind.
    #[error("the SMSC refused the bind: {0}")]
    Refused(Status),
    /// A field of the bind cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

pub(super) async fn connect(
    address: &str,
    options: SessionOptions,
    incoming: Arc<dyn Incoming>,
) -> Result<Session, ConnectError> {
    let open = timeout(options.connect_timeout, open(address, options.source));
    let stream = open.await.map_err(|_| ConnectError::ConnectTimeout)??;
    let Some(tls) = &options.tls else {
        let (stream, input, peer) = bind(stream, &options).await?;
        let (reader, writer) = stream.into_split();
        return Ok(start(reader, writer, input, peer, &options, incoming));
    };
    let connector = TlsConnector::from(Arc::clone(&tls.config));
    let shake = timeout(
        options.connect_timeout,
        connector.connect(tls.name.clone(), stream),
    );
    let stream = shake
        .await
        .map_err(|_| ConnectError::ConnectTimeout)?
        .map_err(ConnectError::Tls)?;
    let (stream, input, peer) = bind(stream, &options).await?;
    let (reader, writer) = tokio::io::split(stream);
    Ok(start(reader, writer, input, peer, &options, incoming))
}

async fn open(address: &str, source: Option<IpAddr>) -> Result<TcpStream, ConnectError> {
    let found = lookup_host(address)
        .await
        .map_err(|source| ConnectError::Resolve {
            address: address.into(),
            source,
        })?;
    let mut last = io::Error::new(
        io::ErrorKind::AddrNotAvailable,
        "no address of the family to dial from",
    );
    for target in found {
        if source.is_some_and(|source| source.is_ipv4() != target.is_ipv4()) {
            continue;
        }
        match dial(target, source).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(ConnectError::Connect {
        address: address.into(),
        source: last,
    })
}

async fn dial(target: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if target.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    let stream = socket.connect(target).await?;
    // Everything that is ready is already written in one call.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Binds. Also returns octets that were read after the response, because an SMSC may deliver messages immediately.
async fn bind<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    options: &SessionOptions,
) -> Result<(S, BytesMut, BindResp), ConnectError> {
    let mut framed = Framed::new(stream, Decoder::new(options.max_pdu));
    let sequence = options.first_sequence.clamp(1, LAST_SEQUENCE);
    let answer = timeout(options.bind_timeout, async {
        let body = Body::Bind(options.bind, Box::new(options.bind_body()));
        framed
            .send(&Pdu::new(sequence, body))
            .await
            .map_err(not_written)?;
        bind_answer(&mut framed).await
    });
    let (status, resp) = answer.await.map_err(|_| ConnectError::BindTimeout)??;
    if !status.is_ok() {
        return Err(ConnectError::Refused(status));
    }
    let (stream, input) = framed.into_parts();
    Ok((stream, input, resp))
}

async fn bind_answer<S: AsyncRead + AsyncWrite + Unpin>(
    framed: &mut Framed<S>,
) -> Result<(Status, BindResp), ConnectError> {
    loop {
        let frame = framed.next().await.map_err(|error| match error {
            ReadError::Io(error) => ConnectError::Io(error),
            ReadError::Length(error) => ConnectError::Length(error),
        })?;
        let Some(frame) = frame else {
            return Err(ConnectError::Closed);
        };
        let Frame::Ok(pdu) = frame else {
            continue;
        };
        match pdu.body {
            Body::BindResp(_, resp) => return Ok((pdu.status, resp)),
            // A `generic_nack` is a refusal, whatever its status.
            Body::GenericNack => {
                let status = if pdu.status.is_ok() {
                    Status::ESME_RBINDFAIL
                } else {
                    pdu.status
                };
                return Ok((status, BindResp::default()));
            }
            Body::EnquireLink => {
                let answer = Pdu::new(pdu.sequence, Body::EnquireLinkResp);
                framed.send(&answer).await.map_err(not_written)?;
            }
            _ => {}
        }
    }
}

fn not_written(error: WriteError) -> ConnectError {
    match error {
        WriteError::Io(error) => ConnectError::Io(error),
        WriteError::Encode(error) => ConnectError::Encode(error),
    }
}

fn start<R, W>(
    reader: R,
    writer: W,
    input: BytesMut,
    peer: BindResp,
    options: &SessionOptions,
    incoming: Arc<dyn Incoming>,
) -> Session
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let shared = Arc::new(Shared::new(options));
    let ended = run::spawn(Arc::clone(&shared), reader, writer, input, incoming);
    Session::new(shared, ended, peer)
}
