//! A minimal load balancer. It checks the health of each node and forwards new connections to the ready nodes in turn.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::http;

const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A balancer on its own port. It stops on drop; open connections continue.
#[derive(Debug)]
pub struct Balancer {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    nodes: Mutex<Vec<Node>>,
    next_node: AtomicUsize,
    ended: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    addr: SocketAddr,
    ready: bool,
}

impl Balancer {
    /// Balances between these nodes, which must be ready.
    pub fn start(nodes: &[SocketAddr]) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let nodes = nodes.iter().map(|&addr| Node { addr, ready: true });
        let shared = Arc::new(Shared {
            nodes: Mutex::new(nodes.collect()),
            next_node: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let (checking, accepting) = (shared.clone(), shared.clone());
        thread::spawn(move || checking.check_health());
        thread::spawn(move || accepting.accept_all(&listener));
        Ok(Self { addr, shared })
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Replaces the address of a node. It gets no connections before its first health check.
    pub fn replace(&self, number: usize, addr: SocketAddr) {
        self.shared.nodes()[number] = Node { addr, ready: false };
    }

    /// Whether all nodes were ready at their last health check.
    pub fn all_ready(&self) -> bool {
        self.shared.nodes().iter().all(|node| node.ready)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // Wakes up the listener, which waits for a connection.
        TcpStream::connect(self.addr).ok();
    }
}

impl Shared {
    fn nodes(&self) -> std::sync::MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn check_health(&self) {
        while !self.has_ended() {
            let nodes = self.nodes().clone();
            for (number, node) in nodes.into_iter().enumerate() {
                let answer = http::request(node.addr, "GET", "/health/ready", &[], b"");
                let ready = answer.is_ok_and(|answer| answer.status == 200);
                let known = &mut self.nodes()[number];
                if known.addr == node.addr {
                    known.ready = ready;
                }
            }
            thread::sleep(CHECK_INTERVAL); // tidy: health checks have an interval, and nothing waits for this thread
        }
    }

    fn accept_all(&self, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.has_ended() {
                return;
            }
            let (Ok(client), Some(node)) = (client, self.next()) else {
                continue;
            };
            // If the node does not accept the connection, the caller loses it, and tests must see that.
            if let Ok(server) = TcpStream::connect(node) {
                forward(client, server).ok();
            }
        }
    }

    fn next(&self) -> Option<SocketAddr> {
        let nodes = self.nodes();
        let ready: Vec<_> = nodes.iter().filter(|node| node.ready).collect();
        let next_node = self.next_node.fetch_add(1, Ordering::Relaxed);
        ready
            .get(next_node % ready.len().max(1))
            .map(|node| node.addr)
    }
}

/// Forwards data in both directions until both are closed.
fn forward(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_again, server_again) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || copy_all(client, server));
    thread::spawn(move || copy_all(server_again, client_again));
    Ok(())
}

fn copy_all(mut from: TcpStream, mut to: TcpStream) {
    // Closes the other side, even after an error.
    io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Write).ok();
}
