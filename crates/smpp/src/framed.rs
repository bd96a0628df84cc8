//! PDUs over a connection, for whoever needs no more than that: a server, a test.

use std::io;

use bytes::BytesMut;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::{Decoder, EncodeError, FatalLength, Frame, Pdu, encode};

/// So much is asked of the connection in one read.
const READ_AT_ONCE: usize = 16 << 10;

/// Reads and writes PDUs.
#[derive(Debug)]
pub struct Framed<S> {
    stream: S,
    decoder: Decoder,
    input: BytesMut,
    output: BytesMut,
}

/// Why a connection has no next PDU.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The connection failed.
    #[error("reading failed")]
    Io(#[from] io::Error),
    /// The stream cannot be cut into PDUs any more.
    #[error(transparent)]
    Length(#[from] FatalLength),
}

/// Why a PDU was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The connection failed.
    #[error("writing failed")]
    Io(#[from] io::Error),
    /// It has no octets.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl<S> Framed<S> {
    /// Over a connection.
    pub fn new(stream: S, decoder: Decoder) -> Self {
        Self {
            stream,
            decoder,
            input: BytesMut::new(),
            output: BytesMut::new(),
        }
    }

    /// The next frame among what is read already.
    pub fn ready(&mut self) -> Result<Option<Frame>, FatalLength> {
        self.decoder.next(&mut self.input)
    }

    /// Puts a PDU behind those that wait to be written; see [`Framed::flush`].
    pub fn queue(&mut self, pdu: &Pdu) -> Result<(), EncodeError> {
        encode(pdu, &mut self.output)
    }

    /// How many octets wait to be written.
    pub fn queued(&self) -> usize {
        self.output.len()
    }

    /// The connection, and what was read and not yet taken.
    pub fn into_parts(self) -> (S, BytesMut) {
        (self.stream, self.input)
    }

    /// The connection, for octets that are no PDU.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }
}

impl<S: AsyncRead + Unpin> Framed<S> {
    /// The next frame; none at the end of the stream, where an unfinished PDU is dropped. Nothing is lost when this is
    /// cancelled.
    pub async fn next(&mut self) -> Result<Option<Frame>, ReadError> {
        loop {
            if let Some(frame) = self.ready()? {
                return Ok(Some(frame));
            }
            self.input.reserve(READ_AT_ONCE);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Framed<S> {
    /// Writes all that waits. When this is cancelled, what was not written still waits.
    pub async fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            if self.stream.write_buf(&mut self.output).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        self.stream.flush().await
    }

    /// Writes a PDU at once.
    pub async fn send(&mut self, pdu: &Pdu) -> Result<(), WriteError> {
        self.queue(pdu)?;
        Ok(self.flush().await?)
    }
}
