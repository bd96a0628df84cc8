//! A TCP relay that stands between two parties and spoils what passes: it delays, cuts and halves.
//!
//! Its address stays while what is behind it may move, so callers keep the address of a server that comes back on
//! another port.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What is read at once; small, so that large messages are spoilt in the middle.
const CHUNK: usize = 4 << 10;
/// How long a connection to the other side may take.
const CONNECT: Duration = Duration::from_secs(2);

/// What the relay does with what passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weather {
    /// Passes everything on at once.
    #[default]
    Fair,
    /// Each piece waits so long.
    Slow(Duration),
    /// Each piece is passed in two halves, the second after so long.
    Halved(Duration),
    /// Takes everything and passes nothing, without closing.
    Silent,
    /// Takes no new connection, and ends those that are open.
    Closed,
}

/// A running relay. Its threads end with the connections, the listener with the process.
#[derive(Debug, Clone)]
pub struct Relay {
    addr: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    target: Mutex<Option<SocketAddr>>,
    weather: Mutex<Weather>,
    /// Grows with each cut; a connection of an earlier time ends with its next piece, half of it passed.
    cuts: AtomicU64,
    open: Mutex<Vec<(TcpStream, TcpStream)>>,
}

impl Relay {
    /// Listens on a free port of `127.0.0.1` and leads to `target`; to nobody while there is none.
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
                // A client without a server sees its connection end, which is what there is to see.
                thread::spawn(move || drop(state.join(client)));
            }
        })?;
        Ok(relay)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Leads new connections to another place.
    pub fn lead_to(&self, target: Option<SocketAddr>) {
        *lock(&self.state.target) = target;
    }

    /// From now on does this with everything.
    pub fn set(&self, weather: Weather) {
        *lock(&self.state.weather) = weather;
        if weather == Weather::Closed {
            self.state.close_all();
        }
    }

    /// Cuts every connection that is open now in the middle of its next piece: half of it still passes.
    pub fn cut(&self) {
        self.state.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends every connection that is open now, at once.
    pub fn close_all(&self) {
        self.state.close_all();
    }
}

impl State {
    fn join(self: Arc<Self>, client: TcpStream) -> io::Result<()> {
        let target = *lock(&self.target);
        let (Some(target), false) = (target, *lock(&self.weather) == Weather::Closed) else {
            return Ok(());
        };
        let server = TcpStream::connect_timeout(&target, CONNECT)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        lock(&self.open).push((client.try_clone()?, server.try_clone()?));
        let (asks, answers) = (client.try_clone()?, server.try_clone()?);
        let since = self.cuts.load(Ordering::SeqCst);
        let state = self.clone();
        let asking = thread::spawn(move || state.pass(asks, server, since));
        self.pass(answers, client, since);
        let _ended_by_a_panic = asking.join();
        lock(&self.open).retain(|(one, _)| one.peer_addr().is_ok());
        Ok(())
    }

    /// Passes on what comes until either side ends or the relay cuts; then both are closed.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, since: u64) {
        let mut buffer = [0; CHUNK];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let piece = &buffer[..count];
            if self.cuts.load(Ordering::SeqCst) != since {
                let _half = to.write_all(&piece[..count / 2]);
                break;
            }
            if self.pass_piece(&mut to, piece).is_err() {
                break;
            }
        }
        let _already_closed = from.shutdown(Shutdown::Both);
        let _closed_too = to.shutdown(Shutdown::Both);
    }

    fn pass_piece(&self, to: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
        let weather = *lock(&self.weather);
        match weather {
            Weather::Fair => to.write_all(piece),
            Weather::Slow(pause) => {
                thread::sleep(pause);
                to.write_all(piece)
            }
            Weather::Halved(pause) => {
                let (first, second) = piece.split_at(piece.len() / 2);
                to.write_all(first)?;
                thread::sleep(pause);
                to.write_all(second)
            }
            Weather::Silent => Ok(()),
            Weather::Closed => Err(io::ErrorKind::ConnectionAborted.into()),
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
    use super::{Relay, Weather};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Answers with what comes.
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
        let patience = Some(crate::PATIENCE);
        stream.set_read_timeout(patience).expect("a socket");
        stream
    }

    #[test]
    fn what_passes_is_whole_slow_or_cut() {
        let relay = Relay::start(Some(echo())).expect("it starts");
        let mut stream = connect(&relay);
        assert_eq!(exchange(&mut stream, "hello"), "hello");
        let pause = Duration::from_millis(40);
        for weather in [Weather::Slow(pause), Weather::Halved(pause)] {
            relay.set(weather);
            let began = Instant::now();
            assert_eq!(exchange(&mut stream, "hello"), "hello", "{weather:?}");
            assert!(began.elapsed() >= pause * 2, "{weather:?}");
        }
        relay.set(Weather::Fair);
        relay.cut();
        assert_ne!(exchange(&mut stream, "hello"), "hello");
        let mut next = connect(&relay);
        assert_eq!(exchange(&mut next, "again"), "again");
    }

    #[test]
    fn a_closed_relay_takes_nobody_until_it_opens() {
        let relay = Relay::start(Some(echo())).expect("it starts");
        let mut stream = connect(&relay);
        assert_eq!(exchange(&mut stream, "hello"), "hello");
        relay.set(Weather::Closed);
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
        assert_eq!(connect(&relay).read(&mut [0; 1]).unwrap_or(0), 0);
        relay.set(Weather::Fair);
        assert_eq!(exchange(&mut connect(&relay), "back"), "back");
    }
}
