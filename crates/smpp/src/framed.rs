//! Reads and writes PDUs on a connection. Sufficient for servers and tests.

use std::io;

use bytes::BytesMut;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::{Decoder, EncodeError, FatalLength, Frame, Pdu, encode};

/// The size of one read.
const READ_AT_ONCE: usize = 16 << 10;

/// A connection that PDUs are read from and written to.
#[derive(Debug)]
pub struct Framed<S> {
    stream: S,
    decoder: Decoder,
    input: BytesMut,
    output: BytesMut,
    frame_octets: usize,
}

/// Why the next PDU cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The connection failed.
    #[error("reading failed")]
    Io(#[from] io::Error),
    /// The stream is no longer a sequence of PDUs.
    #[error(transparent)]
    Length(#[from] FatalLength),
}

/// Why a PDU was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The connection failed.
    #[error("writing failed")]
    Io(#[from] io::Error),
    /// The PDU cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl<S> Framed<S> {
    /// Wraps a connection.
    pub fn new(stream: S, decoder: Decoder) -> Self {
        Self {
            stream,
            decoder,
            input: BytesMut::new(),
            output: BytesMut::new(),
            frame_octets: 0,
        }
    }

    /// The next frame that is already in the read buffer.
    pub fn ready(&mut self) -> Result<Option<Frame>, FatalLength> {
        let before = self.input.len();
        let frame = self.decoder.next(&mut self.input)?;
        if frame.is_some() {
            self.frame_octets = before - self.input.len();
        }
        Ok(frame)
    }

    /// Accepts PDUs of up to so many octets from now on.
    pub fn set_max_pdu(&mut self, octets: usize) {
        self.decoder = Decoder::new(octets);
    }

    /// The length of the frame that was read last.
    pub const fn frame_octets(&self) -> usize {
        self.frame_octets
    }

    /// Adds a PDU to the write buffer; see [`Framed::flush`].
    pub fn queue(&mut self, pdu: &Pdu) -> Result<(), EncodeError> {
        encode(pdu, &mut self.output)
    }

    /// The size of the write buffer in octets.
    pub fn queued(&self) -> usize {
        self.output.len()
    }

    /// The connection, and the rest of the read buffer.
    pub fn into_parts(self) -> (S, BytesMut) {
        (self.stream, self.input)
    }

    /// The connection, to write octets that are not a PDU.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }
}

impl<S: AsyncRead + Unpin> Framed<S> {
    /// The next frame; `None` at the end of the stream, where an incomplete PDU is dropped. Cancel-safe.
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
    /// Writes the write buffer. When cancelled, the unwritten rest stays in the buffer.
    pub async fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            if self.stream.write_buf(&mut self.output).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        self.stream.flush().await
    }

    /// Writes a PDU immediately.
    pub async fn send(&mut self, pdu: &Pdu) -> Result<(), WriteError> {
        self.queue(pdu)?;
        Ok(self.flush().await?)
    }
}
