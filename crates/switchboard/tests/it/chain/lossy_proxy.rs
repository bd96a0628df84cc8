//! A proxy between the two services that can lose answers.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Forwards bytes. When it loses an answer, the upstream has already done the work, and the front service does not
/// know. Its threads end with the connections, the listener with the test process.
pub(super) struct LossyProxy {
    addr: SocketAddr,
    losses: Arc<AtomicUsize>,
}

impl LossyProxy {
    /// Listens on a free port and forwards to `server`.
    pub(super) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let losses = Arc::new(AtomicUsize::new(0));
        let left = losses.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(server).expect("the service listens");
                forward_both_ways(client, server, left.clone());
            }
        });
        Self { addr, losses }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Loses the answers to the next `count` messages; their connections end.
    pub(super) fn lose_answers(&self, count: usize) {
        self.losses.store(count, Ordering::SeqCst);
    }

    pub(super) fn losses_left(&self) -> usize {
        self.losses.load(Ordering::SeqCst)
    }
}

fn forward_both_ways(client: TcpStream, server: TcpStream, losses: Arc<AtomicUsize>) {
    let requests = client.try_clone().expect("a second handle");
    let answers = server.try_clone().expect("a second handle");
    let is_message = Arc::new(AtomicBool::new(false));
    let is_message_request = is_message.clone();
    thread::spawn(move || {
        forward(requests, server, |bytes| {
            // Requests are short, so each arrives in one piece.
            is_message_request.store(bytes.starts_with(b"POST"), Ordering::SeqCst);
            true
        });
    });
    thread::spawn(move || {
        forward(answers, client, |_| {
            let decrement = |left: usize| left.checked_sub(1);
            !is_message.load(Ordering::SeqCst)
                || losses
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement)
                    .is_err()
        });
    });
}

/// Forwards bytes until `may_forward` is false or one side ends; then closes both.
fn forward(mut from: TcpStream, mut to: TcpStream, may_forward: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !may_forward(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _already_closed = from.shutdown(Shutdown::Both);
    let _closed_too = to.shutdown(Shutdown::Both);
}
