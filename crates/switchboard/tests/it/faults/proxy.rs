//! The way to a database, on which answers get lost.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Passes bytes between the service and its database. Whatever it was asked to lose, the database has done: only the
/// service does not get to know. Its threads end with the connections, the listener with the test process.
pub(super) struct Proxy {
    addr: SocketAddr,
    losses: Arc<AtomicU64>,
}

impl Proxy {
    /// Listens, and leads to `server`.
    pub(super) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let losses = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&losses);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Without a server the client sees its connection end, which is what there is to see.
                let _refused = TcpStream::connect(server).and_then(|to| join(client, to, &lost));
            }
        });
        Self { addr, losses }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Every connection that is open now loses the next answer, and ends.
    pub(super) fn lose_answers(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }
}

fn join(client: TcpStream, server: TcpStream, losses: &Arc<AtomicU64>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (asks, answered) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || pass(asks, server, || true));
    let losses = Arc::clone(losses);
    let since = losses.load(Ordering::SeqCst);
    thread::spawn(move || pass(answered, client, || losses.load(Ordering::SeqCst) == since));
    Ok(())
}

/// Passes bytes on while it may; then, and at the end of either side, both are closed.
fn pass(mut from: TcpStream, mut to: TcpStream, may: impl Fn() -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !may() || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _already_closed = from.shutdown(Shutdown::Both);
    let _closed_too = to.shutdown(Shutdown::Both);
}
