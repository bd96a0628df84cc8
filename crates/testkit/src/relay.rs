//! A TCP relay between a client and a server that can delay, split and cut the traffic.
//!
//! Its own address stays the same when the server moves to another port.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Small, so that faults hit large messages in the middle.
const CHUNK_BYTES: usize = 4 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// What the relay does with the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkCondition {
    /// Forwards everything at once.
    #[default]
    Normal,
    /// Delays each chunk.
    Slow(Duration),
    /// Forwards each chunk in two halves, the second after this delay.
    Split(Duration),
    /// Reads everything and forwards nothing; connections stay open.
    Silent,
    /// Closes all connections and accepts no new ones.
    Closed,
}

/// A running relay. Its threads end with their connections, the listener with the process.
#[derive(Debug, Clone)]
pub struct Relay {
    addr: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    target: Mutex<Option<SocketAddr>>,
    condition: Mutex<NetworkCondition>,
    /// The number of cuts so far. A connection that was opened before the last cut ends after half of its next chunk.
    cuts: AtomicU64,
    open: Mutex<Vec<(TcpStream, TcpStream)>>,
}

impl Relay {
    /// Listens on a free port of `127.0.0.1` and connects clients to `target`. Without a target, it closes their
    /// connections.
    pub fn start(target: Option<SocketAddr>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let state = Arc::new(State {
            target: Mutex::new(target),
            ..State::default()
        });
        let relay = Self { addr, state };
        let state = relay.state.clone();
        thread::Builder::new().name("relay".into()).spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = state.clone();
                // If there is no server, the connection of the client is closed.
                thread::spawn(move || drop(state.connect(client)));
            }
        })?;
        Ok(relay)
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connects new clients to another server.
    pub fn set_target(&self, target: Option<SocketAddr>) {
        *lock(&self.state.target) = target;
    }

    /// Changes the condition for open and new connections.
    pub fn set_condition(&self, condition: NetworkCondition) {
        *lock(&self.state.condition) = condition;
        if condition == NetworkCondition::Closed {
            self.state.close_all();
        }
    }

    /// Ends every open connection in the middle of its next chunk: half of the chunk is still forwarded.
    pub fn cut(&self) {
        self.state.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// Closes all open connections.
    pub fn close_all(&self) {
        self.state.close_all();
    }
}

impl State {
    fn connect(self: Arc<Self>, client: TcpStream) -> io::Result<()> {
        let target = *lock(&self.target);
        let (Some(target), false) = (target, *lock(&self.condition) == NetworkCondition::Closed)
        else {
            return Ok(());
        };
        let server = TcpStream::connect_timeout(&target, CONNECT_TIMEOUT)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        lock(&self.open).push((client.try_clone()?, server.try_clone()?));
        let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
        let cuts_before = self.cuts.load(Ordering::SeqCst);
        let state = self.clone();
        let requests = thread::spawn(move || state.forward(from_client, server, cuts_before));
        self.forward(from_server, client, cuts_before);
        let _ended_by_a_panic = requests.join();
        lock(&self.open).retain(|(one, _)| one.peer_addr().is_ok());
        Ok(())
    }

    /// Forwards data until either side closes or the relay cuts the connection, then closes both sides.
    fn forward(&self, mut from: TcpStream, mut to: TcpStream, cuts_before: u64) {
        let mut buffer = [0; CHUNK_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let chunk = &buffer[..count];
            if self.cuts.load(Ordering::SeqCst) != cuts_before {
                let _half = to.write_all(&chunk[..count / 2]);
                break;
            }
            if self.forward_chunk(&mut to, chunk).is_err() {
                break;
            }
        }
        let _already_closed = from.shutdown(Shutdown::Both);
        let _closed_too = to.shutdown(Shutdown::Both);
    }

    fn forward_chunk(&self, to: &mut TcpStream, chunk: &[u8]) -> io::Result<()> {
        let condition = *lock(&self.condition);
        match condition {
            NetworkCondition::Normal => to.write_all(chunk),
            NetworkCondition::Slow(pause) => {
                thread::sleep(pause);
                to.write_all(chunk)
            }
            NetworkCondition::Split(pause) => {
                let (first, second) = chunk.split_at(chunk.len() / 2);
                to.write_all(first)?;
                thread::sleep(pause);
                to.write_all(second)
            }
            NetworkCondition::Silent => Ok(()),
            NetworkCondition::Closed => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    fn close_all(&self) {
        for (client, server) in lock(&self.open).drain(..) {
            let _already_closed = client.shutdown(Shutdown::Both);
            let _closed_too = server.shutdown(Shutdown::Both);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{NetworkCondition, Relay};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    /// A server that sends everything back.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let mut reading = stream.try_clone().expect("a socket");
                    let mut writing = stream;
                    std::io::copy(&mut reading, &mut writing).ok();
                });
            }
        });
        addr
    }

    fn exchange(stream: &mut TcpStream, text: &str) -> String {
        stream.write_all(text.as_bytes()).expect("it is taken");
        let mut answer = vec![0; text.len()];
        let mut read = 0;
        while read < answer.len() {
            match stream.read(&mut answer[read..]) {
                Ok(count @ 1..) => read += count,
                _ => break,
            }
        }
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }

    fn connect(relay: &Relay) -> TcpStream {
        let stream = TcpStream::connect(relay.addr()).expect("it listens");
        let timeout = Some(crate::TEST_TIMEOUT);
        stream.set_read_timeout(timeout).expect("a socket");
        stream
    }

    #[test]
    fn traffic_is_forwarded_delayed_split_or_cut() {
        let relay = Relay::start(Some(echo())).expect("it starts");
        let mut stream = connect(&relay);
        assert_eq!(exchange(&mut stream, "hello"), "hello");
        let pause = Duration::from_millis(40);
        for condition in [
            NetworkCondition::Slow(pause),
            NetworkCondition::Split(pause),
        ] {
            relay.set_condition(condition);
            let began = Instant::now();
            assert_eq!(exchange(&mut stream, "hello"), "hello", "{condition:?}");
            assert!(began.elapsed() >= pause * 2, "{condition:?}");
        }
        relay.set_condition(NetworkCondition::Normal);
        relay.cut();
        assert_ne!(exchange(&mut stream, "hello"), "hello");
        let mut next = connect(&relay);
        assert_eq!(exchange(&mut next, "again"), "again");
    }

    #[test]
    fn a_closed_relay_accepts_nobody_until_it_opens() {
        let relay = Relay::start(Some(echo())).expect("it starts");
        let mut stream = connect(&relay);
        assert_eq!(exchange(&mut stream, "hello"), "hello");
        relay.set_condition(NetworkCondition::Closed);
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
        assert_eq!(connect(&relay).read(&mut [0; 1]).unwrap_or(0), 0);
        relay.set_condition(NetworkCondition::Normal);
        assert_eq!(exchange(&mut connect(&relay), "back"), "back");
    }
}
