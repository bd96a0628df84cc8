//! The way between the two services, on which answers get lost.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Passes bytes on. What it was asked to lose, the second service has done: only the first does not get to know. Its
/// threads end with the connections, the listener with the test process.
pub(super) struct Lossy {
    addr: SocketAddr,
    losses: Arc<AtomicUsize>,
}

impl Lossy {
    /// Listens, and leads to `server`.
    pub(super) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let losses = Arc::new(AtomicUsize::new(0));
        let left = losses.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(server).expect("the service listens");
                join(client, server, left.clone());
            }
        });
        Self { addr, losses }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The answers to the next so many messages do not arrive; the connection ends instead.
    pub(super) fn lose_answers(&self, count: usize) {
        self.losses.store(count, Ordering::SeqCst);
    }

    /// How many are still to be lost.
    pub(super) fn left(&self) -> usize {
        self.losses.load(Ordering::SeqCst)
    }
}

fn join(client: TcpStream, server: TcpStream, losses: Arc<AtomicUsize>) {
    let asks = client.try_clone().expect("a second handle");
    let answered = server.try_clone().expect("a second handle");
    let is_message = Arc::new(AtomicBool::new(false));
    let asked = is_message.clone();
    thread::spawn(move || {
        pass(asks, server, |bytes| {
            // Requests are short, and each comes in one piece.
            asked.store(bytes.starts_with(b"POST"), Ordering::SeqCst);
            true
        });
    });
    thread::spawn(move || {
        pass(answered, client, |_| {
            let less = |left: usize| left.checked_sub(1);
            !is_message.load(Ordering::SeqCst)
                || losses
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                    .is_err()
        });
    });
}

/// Passes bytes on while it may; then, and at the end of either side, both are closed.
fn pass(mut from: TcpStream, mut to: TcpStream, may: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !may(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _already_closed = from.shutdown(Shutdown::Both);
    let _closed_too = to.shutdown(Shutdown::Both);
}
