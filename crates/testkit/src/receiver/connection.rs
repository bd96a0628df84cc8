//! One connection: reads whole requests out of a buffer that is reused, and answers each.

use super::reply::Act;
use super::request::{Request, request_line};
use super::{Desk, Reply};
use crate::answer;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BUFFER_BYTES: usize = 4 << 10;
/// No callback comes near this; a runaway one must not eat the machine.
const MAX_REQUEST_BYTES: usize = 4 << 20;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK";

pub(super) struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    desk: Arc<Desk>,
    buffer: Vec<u8>,
    filled: usize,
    /// How many requests came on it.
    number: usize,
}

/// Whether to read on after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Read,
    End,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, desk: Arc<Desk>) -> Self {
        Self {
            stream,
            peer,
            desk,
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            number: 0,
        }
    }

    /// A caller that breaks off, or sends what is no request, is simply let go: what it should have
    /// sent is then missing among what was received.
    pub(super) async fn serve(mut self) {
        let _caller_is_gone = self.answer_all().await;
    }

    async fn answer_all(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        while let Some((head, body)) = self.read_request().await? {
            let end = body.end;
            if self.answer(head, body).await? == Next::End {
                break;
            }
            // What was pipelined behind it is the start of the next request.
            self.buffer.copy_within(end..self.filled, 0);
            self.filled -= end;
            self.number += 1;
        }
        Ok(())
    }

    /// Reads until head and body are there; `None` when the other side closed between requests.
    async fn read_request(&mut self) -> io::Result<Option<(usize, Range<usize>)>> {
        loop {
            let wanted = match answer::head_end(&self.buffer[..self.filled]) {
                Some(head) => {
                    let length = answer::content_length(&self.buffer[..head]).unwrap_or(0);
                    let end = head.saturating_add(length);
                    if end <= self.filled {
                        return Ok(Some((head, head..end)));
                    }
                    end
                }
                None => self.filled + 1,
            };
            if wanted > MAX_REQUEST_BYTES {
                return Err(ErrorKind::InvalidData.into());
            }
            if wanted > self.buffer.len() {
                self.buffer.resize(wanted.next_power_of_two(), 0);
            }
            match self.stream.read(&mut self.buffer[self.filled..]).await? {
                0 if self.filled == 0 => return Ok(None),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.filled += count,
            }
        }
    }

    async fn answer(&mut self, head: usize, body: Range<usize>) -> io::Result<Next> {
        let head = &self.buffer[..head];
        let (method, path) = request_line(head).ok_or(ErrorKind::InvalidData)?;
        let request = Request {
            peer: self.peer,
            number: self.number,
            method,
            path,
            head,
            body: &self.buffer[body],
        };
        let next = if request.is_last() {
            Next::End
        } else {
            Next::Read
        };
        match self.desk.take(&request) {
            None => {
                self.stream.write_all(OK).await?;
                Ok(next)
            }
            Some(reply) => self.follow(reply, next).await,
        }
    }

    async fn follow(&mut self, reply: Reply, next: Next) -> io::Result<Next> {
        if !reply.delay.is_zero() {
            tokio::time::sleep(reply.delay).await;
        }
        match reply.act {
            Act::Send(bytes) => {
                self.stream.write_all(&bytes).await?;
                Ok(next)
            }
            Act::Close(bytes) => {
                self.stream.write_all(&bytes).await?;
                self.stream.shutdown().await?;
                Ok(Next::End)
            }
            Act::Hang => {
                let mut ignored = [0; 512];
                while self.stream.read(&mut ignored).await? > 0 {}
                Ok(Next::End)
            }
        }
    }
}
