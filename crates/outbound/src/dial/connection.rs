//! An open connection, plain or TLS, in the form that the HTTP client needs.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub struct Connection {
    stream: Stream,
    address: Option<SocketAddr>,
}

enum Stream {
    Plain(TokioIo<TcpStream>),
    // Boxed, because it is many times larger than the other variant.
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection {
    pub(super) fn plain(stream: TcpStream, address: Option<SocketAddr>) -> Self {
        Self {
            stream: Stream::Plain(TokioIo::new(stream)),
            address,
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>, address: Option<SocketAddr>) -> Self {
        Self {
            stream: Stream::Tls(Box::new(TokioIo::new(stream))),
            address,
        }
    }

    /// The address of the other side, unless a proxy hides it.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

/// Calls the same method on either kind of stream.
macro_rules! either {
    ($wire:ident, $stream:ident => $call:expr) => {
        match &mut $wire.get_mut().stream {
            Stream::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Stream::Tls(stream) => {
                let $stream = Pin::new(&mut **stream);
                $call
            }
        }
    };
}

impl Read for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl Write for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
