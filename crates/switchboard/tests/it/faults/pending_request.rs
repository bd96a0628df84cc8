//! A request whose headers the service has read, while it waits for the body.

use std::io::{Read, Write};
use std::net::TcpStream;

use testkit::TEST_TIMEOUT;

use super::test_service::RequestSender;

/// A request that stays in flight until the test sends its body.
pub(super) struct PendingRequest {
    stream: TcpStream,
    body: Vec<u8>,
}

impl PendingRequest {
    /// Sends the headers and waits until the service asks for the body.
    pub(super) fn begin(sender: &RequestSender, number: u64) -> Self {
        let request = sender.encode_with(number, &[("Expect", "100-continue")]);
        let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let (head, body) = request.split_at(end.expect("a head") + 4);
        let mut stream = TcpStream::connect(sender.addr).expect("the service takes connections");
        stream
            .set_read_timeout(Some(TEST_TIMEOUT))
            .expect("a deadline");
        stream.write_all(head).expect("the service reads");
        let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
        stream.read_exact(&mut asked).expect("an interim answer");
        assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
        Self {
            stream,
            body: body.to_owned(),
        }
    }

    /// Sends the body and returns the whole answer. The service must close the connection after it.
    pub(super) fn finish_and_close(mut self) -> String {
        self.stream.write_all(&self.body).expect("it still reads");
        let mut answer = String::new();
        self.stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Sends the body and returns the first line of the answer.
    pub(super) fn finish(mut self) -> String {
        self.stream.write_all(&self.body).expect("it still reads");
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") {
            self.stream.read_exact(&mut byte).expect("an answer");
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text").trim_end().to_owned()
    }
}
