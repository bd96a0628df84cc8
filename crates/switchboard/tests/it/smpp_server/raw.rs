//! A client that writes PDUs by hand.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use testkit::TEST_TIMEOUT;

pub(super) const BIND_RECEIVER: u32 = 1;
pub(super) const BIND_TRANSMITTER: u32 = 2;
pub(super) const QUERY: u32 = 3;
pub(super) const SUBMIT: u32 = 4;
pub(super) const DELIVER: u32 = 5;
pub(super) const UNBIND: u32 = 6;
pub(super) const REPLACE: u32 = 7;
pub(super) const CANCEL: u32 = 8;
pub(super) const BIND_TRANSCEIVER: u32 = 9;
pub(super) const ENQUIRE: u32 = 0x15;
pub(super) const SUBMIT_MULTI: u32 = 0x21;
pub(super) const DATA: u32 = 0x103;
pub(super) const BROADCAST: u32 = 0x111;
pub(super) const RESPONSE: u32 = 0x8000_0000;

/// A PDU that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pdu {
    pub(super) command: u32,
    pub(super) status: u32,
    pub(super) sequence: u32,
    pub(super) body: Vec<u8>,
}

impl Pdu {
    /// The C string that the body begins with.
    pub(super) fn text(&self) -> String {
        let text = self.body.split(|octet| *octet == 0).next();
        String::from_utf8(text.unwrap_or_default().to_vec()).expect("ASCII")
    }
}

pub(super) struct Client {
    pub(super) stream: TcpStream,
    sequence: u32,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream
            .set_read_timeout(Some(TEST_TIMEOUT))
            .expect("a duration");
        Self {
            stream,
            sequence: 0,
        }
    }

    /// A client that has bound.
    pub(super) fn bound(address: SocketAddr, kind: u32, system_id: &str, password: &str) -> Self {
        let mut client = Self::connect(address);
        let answer = client.bind(kind, system_id, password);
        assert_eq!(answer.status, 0, "{answer:?}");
        client
    }

    pub(super) fn bind(&mut self, kind: u32, system_id: &str, password: &str) -> Pdu {
        let body = format!("{system_id}\0{password}\0\0\x34\0\0\0");
        let answer = self.ask(kind, body.as_bytes());
        assert_eq!(answer.command, kind | RESPONSE);
        answer
    }

    /// Writes a request and returns its number.
    pub(super) fn send(&mut self, command: u32, body: &[u8]) -> u32 {
        self.sequence += 1;
        self.write(command, 0, self.sequence, body);
        self.sequence
    }

    pub(super) fn write(&mut self, command: u32, status: u32, sequence: u32, body: &[u8]) {
        let octets = pdu(command, status, sequence, body);
        self.stream.write_all(&octets).expect("open");
    }

    /// Sends a request and reads the next PDU, which must be its answer.
    pub(super) fn ask(&mut self, command: u32, body: &[u8]) -> Pdu {
        let sequence = self.send(command, body);
        let answer = self.read().expect("an answer");
        assert_eq!(answer.sequence, sequence, "{answer:?}");
        answer
    }

    /// The next PDU; `None` at the end of the connection.
    pub(super) fn read(&mut self) -> Option<Pdu> {
        let mut header = [0; 16];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("nothing came"),
            Err(_) => return None,
        }
        let word = |at: usize| {
            let octets = header[at..at + 4].try_into().expect("four octets");
            u32::from_be_bytes(octets)
        };
        let length = usize::try_from(word(0)).expect("small");
        let mut body = vec![0; length - 16];
        self.stream.read_exact(&mut body).expect("a whole PDU");
        Some(Pdu {
            command: word(4),
            status: word(8),
            sequence: word(12),
            body,
        })
    }
}

pub(super) fn pdu(command: u32, status: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 16).expect("small");
    let header = [length, command, status, sequence].map(u32::to_be_bytes);
    [&header.concat(), body].concat()
}

/// The fields of `submit_sm` that tests change.
#[derive(Clone)]
pub(super) struct Submit<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) schedule: &'a str,
    pub(super) validity: &'a str,
    pub(super) receipt: u8,
    pub(super) coding: u8,
    pub(super) text: &'a [u8],
}

impl Default for Submit<'_> {
    fn default() -> Self {
        Self {
            from: "Acme",
            to: super::TO,
            schedule: "",
            validity: "",
            receipt: 0,
            coding: 0,
            text: b"Hello",
        }
    }
}

impl Submit<'_> {
    pub(super) fn body(&self) -> Vec<u8> {
        let length = u8::try_from(self.text.len()).expect("short");
        [
            format!("\0\x05\0{}\0\x01\x01{}\0", self.from, self.to).as_bytes(),
            &[0, 0, 0],
            format!("{}\0{}\0", self.schedule, self.validity).as_bytes(),
            &[self.receipt, 0, self.coding, 0, length],
            self.text,
        ]
        .concat()
    }
}
