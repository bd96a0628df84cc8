//! A proxy to a database that can lose answers.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Forwards bytes between the service and its database. When it loses an answer, the database has already done the
/// work, and the service does not know. Its threads end with the connections, the listener with the test process.
pub(super) struct LossyProxy {
    addr: SocketAddr,
    losses: Arc<AtomicU64>,
}

impl LossyProxy {
    /// Listens on a free port and forwards to `server`.
    pub(super) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let losses = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&losses);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // If the server cannot be reached, the client sees its connection end.
                let _refused =
                    TcpStream::connect(server).and_then(|to| forward_both_ways(client, to, &lost));
            }
        });
        Self { addr, losses }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Each open connection loses its next answer and ends.
    pub(super) fn lose_answers(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }
}

fn forward_both_ways(
    client: TcpStream,
    server: TcpStream,
    losses: &Arc<AtomicU64>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (requests, answers) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || forward(requests, server, || true));
    let losses = Arc::clone(losses);
    let since = losses.load(Ordering::SeqCst);
    thread::spawn(move || forward(answers, client, || losses.load(Ordering::SeqCst) == since));
    Ok(())
}

/// Forwards bytes until `may_forward` is false or one side ends; then closes both.
fn forward(mut from: TcpStream, mut to: TcpStream, may_forward: impl Fn() -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !may_forward() || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _already_closed = from.shutdown(Shutdown::Both);
    let _closed_too = to.shutdown(Shutdown::Both);
}
