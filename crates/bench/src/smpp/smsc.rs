//! An SMSC on a separate thread. It accepts every message, and answers all messages of one read with one write.

use ::smpp::{Body, Decoder, Frame, MessageResp, Pdu, encode};
use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

const READ_BYTES: usize = 64 << 10;

/// It serves one client and ends when that disconnects.
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

    /// Waits until the client has disconnected. Returns the number of messages.
    pub(crate) fn submit_count(self) -> Result<u64> {
        match self.thread.join() {
            Ok(count) => count,
            Err(_) => bail!("the SMSC panicked"),
        }
    }
}

fn serve(mut stream: TcpStream) -> Result<u64> {
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; READ_BYTES];
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut submits = 0;
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(submits),
            Ok(length) => input.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(submits),
            Err(error) => return Err(error.into()),
        }
        while let Some(frame) = decoder.next(&mut input)? {
            let Frame::Ok(pdu) = frame else {
                bail!("the client wrote {frame:?}");
            };
            let body = match pdu.body {
                Body::SubmitSm(_) => {
                    submits += 1;
                    Body::SubmitSmResp(MessageResp::new(id(submits)))
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

/// A message ID in hexadecimal, as many SMSCs use it.
fn id(number: u64) -> Bytes {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit =
        |index: usize| DIGITS[usize::try_from((number >> (4 * (11 - index))) & 15).unwrap_or(0)];
    Bytes::copy_from_slice(&std::array::from_fn::<u8, 12, _>(digit))
}
