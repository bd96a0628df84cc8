//! An open connection, plain or TLS, in the form that the HTTP client needs.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Facts about a connection, which the HTTP client attaches to the response.
#[derive(Debug, Clone)]
pub struct Dialled {
    pub address: SocketAddr,
    answered: Arc<AtomicBool>,
}

impl Dialled {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            answered: Arc::default(),
        }
    }

    /// Records that a response came over this connection.
    pub fn note_answer(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Whether a response came over it before. Then it was kept open, and the other side may have closed it since.
    pub fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }
}

pub struct Wire {
    stream: Stream,
    dialled: Dialled,
}

enum Stream {
    Plain(TokioIo<TcpStream>),
    // Boxed, because it is many times larger than the other variant.
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Wire {
    pub(super) fn plain(stream: TcpStream, address: SocketAddr) -> Self {
        Self {
            stream: Stream::Plain(TokioIo::new(stream)),
            dialled: Dialled::new(address),
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>, address: SocketAddr) -> Self {
        Self {
            stream: Stream::Tls(Box::new(TokioIo::new(stream))),
            dialled: Dialled::new(address),
        }
    }

    pub fn dialled(&self) -> &Dialled {
        &self.dialled
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.dialled.clone())
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

impl Read for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl Write for Wire {
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
