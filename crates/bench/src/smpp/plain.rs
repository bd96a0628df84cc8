//! The plain loop: it writes a window of encoded messages, then reads a window of answers and checks only their
//! lengths. This is the most that one connection and one thread can do without overlapping the two.

use super::{Options, Smsc, WARM_UP, WINDOW, message, rate};
use ::smpp::{BindKind, Body, Pdu, encode};
use anyhow::{Context, Result, ensure};
use bytes::BytesMut;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(super) fn measure(options: &Options) -> Result<u64> {
    let smsc = Smsc::start()?;
    let mut stream = TcpStream::connect(smsc.addr())?;
    stream.set_nodelay(true)?;
    let mut answers = Answers::default();
    let mut octets = BytesMut::new();
    let bind = Body::Bind(BindKind::Transceiver, Box::default());
    encode(&Pdu::new(1, bind), &mut octets)?;
    stream.write_all(&octets)?;
    answers.read(&mut stream, 1)?;

    octets.clear();
    for sequence in 2..2 + u32::try_from(WINDOW)? {
        let body = Body::SubmitSm(Box::new(message()));
        encode(&Pdu::new(sequence, body), &mut octets)?;
    }
    let mut exchange = |time: Duration| -> Result<u64> {
        let start = Instant::now();
        let mut sent = 0;
        while start.elapsed() < time {
            stream.write_all(&octets)?;
            answers.read(&mut stream, WINDOW)?;
            sent += WINDOW as u64;
        }
        Ok(rate(sent, start.elapsed()))
    };
    exchange(WARM_UP)?;
    let found = exchange(options.measured())?;
    drop(stream);
    smsc.submit_count()?;
    Ok(found)
}

/// Counts answers by their length fields.
struct Answers {
    buffer: Vec<u8>,
    filled: usize,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            buffer: vec![0; 64 << 10],
            filled: 0,
        }
    }
}

impl Answers {
    fn read(&mut self, stream: &mut TcpStream, wanted: usize) -> Result<()> {
        let mut found = 0;
        while found < wanted {
            let length = stream.read(&mut self.buffer[self.filled..])?;
            ensure!(length > 0, "the SMSC closed the connection");
            self.filled += length;
            let mut at = 0;
            while let Some(length) = self.buffer[at..self.filled].first_chunk() {
                let length =
                    usize::try_from(u32::from_be_bytes(*length)).context("invalid length")?;
                if at + length > self.filled {
                    break;
                }
                at += length;
                found += 1;
            }
            self.buffer.copy_within(at..self.filled, 0);
            self.filled -= at;
        }
        ensure!(found == wanted, "{found} answers to {wanted} messages");
        Ok(())
    }
}
