//! An SMSC on a thread of its own: it takes every message, and answers in one write what came in one read.

use ::smpp::{Body, Decoder, Frame, MessageResp, Pdu, encode};
use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

const READ_AT_ONCE: usize = 64 << 10;

/// It serves one client, and ends with it.
pub(crate) struct Smsc {
    addr: SocketAddr,
    thread: JoinHandle<Result<u64>>,
}

impl Smsc {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            serve(stream)
        });
        Ok(Self { addr, thread })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many messages it took. The client has closed its connection, or does so now.
    pub(crate) fn taken(self) -> Result<u64> {
        match self.thread.join() {
            Ok(taken) => taken,
            Err(_) => bail!("the SMSC panicked"),
        }
    }
}

fn serve(mut stream: TcpStream) -> Result<u64> {
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; READ_AT_ONCE];
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut taken = 0;
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(taken),
            Ok(length) => input.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(taken),
            Err(error) => return Err(error.into()),
        }
        while let Some(frame) = decoder.next(&mut input)? {
            let Frame::Ok(pdu) = frame else {
                bail!("the client wrote {frame:?}");
            };
            let body = match pdu.body {
                Body::SubmitSm(_) => {
                    taken += 1;
                    Body::SubmitSmResp(MessageResp::new(id(taken)))
                }
                Body::Bind(kind, _) => Body::BindResp(kind, ::smpp::BindResp::default()),
                Body::EnquireLink => Body::EnquireLinkResp,
                Body::Unbind => Body::UnbindResp,
                other => bail!("no answer to {other:?}"),
            };
            encode(&Pdu::new(pdu.sequence, body), &mut output)?;
        }
        stream.write_all(&output)?;
        output.clear();
    }
}

/// A number in hexadecimal, as many SMSCs have it.
fn id(number: u64) -> Bytes {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit =
        |place: usize| DIGITS[usize::try_from((number >> (4 * (11 - place))) & 15).unwrap_or(0)];
    Bytes::copy_from_slice(&std::array::from_fn::<u8, 12, _>(digit))
}
