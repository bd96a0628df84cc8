//! One connection: reads requests into a buffer that is reused, and answers each.

use super::reply::Action;
use super::request::{Request, request_line};
use super::{Reply, Shared};
use crate::http_head;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BUFFER_BYTES: usize = 4 << 10;
/// Far more than any callback has. Limits the memory for a broken one.
const MAX_REQUEST_BYTES: usize = 4 << 20;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK";

pub(super) struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    filled: usize,
    /// The number of requests so far.
    number: usize,
}

/// Whether to read another request after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Read,
    End,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) -> Self {
        Self {
            stream,
            peer,
            shared,
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            number: 0,
        }
    }

    /// Ignores callers that disconnect or send something else than HTTP: tests notice that their request is missing.
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
            // Pipelined octets after it are the start of the next request.
            self.buffer.copy_within(end..self.filled, 0);
            self.filled -= end;
            self.number += 1;
        }
        Ok(())
    }

    /// Reads until head and body are complete; `None` if the other side closed between requests.
    async fn read_request(&mut self) -> io::Result<Option<(usize, Range<usize>)>> {
        loop {
            let wanted = match http_head::head_end(&self.buffer[..self.filled]) {
                Some(head) => {
                    let length = http_head::content_length(&self.buffer[..head]).unwrap_or(0);
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
        match self.shared.receive(&request) {
            None => {
                self.stream.write_all(OK).await?;
                Ok(next)
            }
            Some(reply) => self.send_reply(reply, next).await,
        }
    }

    async fn send_reply(&mut self, reply: Reply, next: Next) -> io::Result<Next> {
        if !reply.delay.is_zero() {
            tokio::time::sleep(reply.delay).await;
        }
        match reply.action {
            Action::Send(bytes) => {
                self.stream.write_all(&bytes).await?;
                Ok(next)
            }
            Action::Close(bytes) => {
                self.stream.write_all(&bytes).await?;
                self.stream.shutdown().await?;
                Ok(Next::End)
            }
            Action::Hang => {
                let mut ignored = [0; 512];
                while self.stream.read(&mut ignored).await? > 0 {}
                Ok(Next::End)
            }
        }
    }
}
