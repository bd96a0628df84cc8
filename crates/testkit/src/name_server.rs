//! A DNS server with scripted answers.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

const HEADER: usize = 12;
/// A response, with recursion available.
const FLAGS: u16 = 0x8180;
const NO_SUCH_NAME: u16 = 3;
const CLASS_IN: u16 = 1;
const TYPE_A: u16 = 1;
const TYPE_SOA: u16 = 6;
const TYPE_AAAA: u16 = 28;
/// Points to the name in the question.
const SAME_NAME: u16 = 0xC00C;

/// The answer for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// These addresses, with this TTL in seconds.
    Addresses(Vec<IpAddr>, u32),
    /// The name does not exist, with this TTL in seconds.
    NoSuchName(u32),
    /// No response at all.
    NoAnswer,
}

impl Record {
    /// One address with a TTL of an hour.
    pub fn address(address: impl Into<IpAddr>) -> Self {
        Self::Addresses(vec![address.into()], 3600)
    }
}

/// A DNS server on loopback, over UDP. It stops on drop.
pub struct NameServer {
    address: SocketAddr,
    /// The names of all queries.
    queries: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    /// Starts it. `record` gets a name in lower case without a dot at its end.
    pub fn start(record: impl Fn(&str) -> Record + Send + 'static) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = socket.local_addr()?;
        let queries = Arc::<Mutex<Vec<String>>>::default();
        let stop = Arc::<AtomicBool>::default();
        let (log, stopped) = (queries.clone(), stop.clone());
        let thread = thread::spawn(move || {
            let mut packet = [0; 2048];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                let Some(question) = Question::read(&packet[..length]) else {
                    continue;
                };
                log.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(question.name.clone());
                if let Some(answer) = question.answer(&record(&question.name)) {
                    // The client may be gone.
                    drop(socket.send_to(&answer, from));
                }
            }
        });
        Ok(Self {
            address,
            queries,
            stop,
            thread: Some(thread),
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of queries for a name, of all record types.
    pub fn query_count(&self, name: &str) -> usize {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        queries.iter().filter(|query| *query == name).count()
    }

    /// How many different names with this suffix were queried.
    pub fn name_count_under(&self, suffix: &str) -> usize {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let names = queries.iter().filter(|query| query.ends_with(suffix));
        names.collect::<HashSet<_>>().len()
    }

    /// The number of queries for names with this suffix.
    pub fn query_count_under(&self, suffix: &str) -> usize {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        queries
            .iter()
            .filter(|query| query.ends_with(suffix))
            .count()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let woken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|socket| socket.send_to(&[0], self.address));
        if woken.is_ok()
            && let Some(thread) = self.thread.take()
        {
            drop(thread.join());
        }
    }
}

struct Question<'p> {
    id: &'p [u8],
    /// The question section, which the answer repeats.
    octets: &'p [u8],
    name: String,
    kind: u16,
}

impl<'p> Question<'p> {
    fn read(packet: &'p [u8]) -> Option<Self> {
        let id = packet.get(..2)?;
        let mut at = HEADER;
        let mut labels = Vec::new();
        loop {
            let length = usize::from(*packet.get(at)?);
            if length == 0 {
                break;
            }
            let label = packet.get(at + 1..at + 1 + length)?;
            labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
            at += 1 + length;
        }
        let kind = packet.get(at + 1..at + 3)?.try_into().ok()?;
        Some(Self {
            id,
            octets: packet.get(HEADER..at + 5)?,
            name: labels.join("."),
            kind: u16::from_be_bytes(kind),
        })
    }

    fn answer(&self, record: &Record) -> Option<Vec<u8>> {
        let (addresses, ttl, code) = match record {
            Record::Addresses(addresses, ttl) => (addresses.as_slice(), *ttl, 0),
            Record::NoSuchName(ttl) => (&[][..], *ttl, NO_SUCH_NAME),
            Record::NoAnswer => return None,
        };
        let answers: Vec<_> = addresses
            .iter()
            .filter_map(|address| match (address, self.kind) {
                (IpAddr::V4(ip), TYPE_A) => Some(ip.octets().to_vec()),
                (IpAddr::V6(ip), TYPE_AAAA) => Some(ip.octets().to_vec()),
                _ => None,
            })
            .collect();
        let count = u16::try_from(answers.len()).ok()?;
        let words = |words: &[u16]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_be_bytes()).collect()
        };
        let mut packet = self.id.to_vec();
        packet.extend(words(&[FLAGS | code, 1, count, u16::from(count == 0), 0]));
        packet.extend_from_slice(self.octets);
        for address in &answers {
            packet.extend(words(&[SAME_NAME, self.kind, CLASS_IN]));
            packet.extend(ttl.to_be_bytes());
            packet.extend(u16::try_from(address.len()).ok()?.to_be_bytes());
            packet.extend(address);
        }
        if count == 0 {
            // The SOA record of the root: its last number is the TTL of the negative answer.
            packet.push(0);
            packet.extend(words(&[TYPE_SOA, CLASS_IN]));
            packet.extend(ttl.to_be_bytes());
            packet.extend(22_u16.to_be_bytes());
            packet.extend([0, 0]);
            for number in [1, 3600, 600, 86_400, ttl] {
                packet.extend(number.to_be_bytes());
            }
        }
        Some(packet)
    }
}
