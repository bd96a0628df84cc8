//! An open connection, plain or TLS, as the HTTP client wants it.

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

/// What is known of a connection, wherever the HTTP client hands it on.
#[derive(Debug, Clone)]
pub struct Dialled {
    /// The address at its other end.
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

    /// Notes that an answer came over it.
    pub fn note_answer(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Whether an answer came over it before: then it was kept, and may have been closed over there in the meantime.
    pub fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }
}

/// An open connection.
pub struct Wire {
    stream: Stream,
    dialled: Dialled,
}

enum Stream {
    Plain(TokioIo<TcpStream>),
    // Boxed, because it is many times the size of the other.
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

    /// What is known of it.
    pub fn dialled(&self) -> &Dialled {
        &self.dialled
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.dialled.clone())
    }
}

/// Does the same to either kind of stream.
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
