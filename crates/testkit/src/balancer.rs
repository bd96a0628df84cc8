//! A load balancer of the simplest kind: it asks each node whether it is ready, and hands every new connection to one
//! that said so last.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::http;

/// How often nodes are asked.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A balancer on a port of its own. It ends with this value; connections that it joined go on.
#[derive(Debug)]
pub struct Balancer {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    nodes: Mutex<Vec<Node>>,
    turn: AtomicUsize,
    ended: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    addr: SocketAddr,
    ready: bool,
}

impl Balancer {
    /// Stands before these nodes, which are ready.
    pub fn start(nodes: &[SocketAddr]) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let nodes = nodes.iter().map(|&addr| Node { addr, ready: true });
        let shared = Arc::new(Shared {
            nodes: Mutex::new(nodes.collect()),
            turn: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let (asking, taking) = (shared.clone(), shared.clone());
        thread::spawn(move || asking.ask());
        thread::spawn(move || taking.take(&listener));
        Ok(Self { addr, shared })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A node has come back at another address; it is asked before anything is sent to it.
    pub fn replace(&self, number: usize, addr: SocketAddr) {
        self.shared.nodes()[number] = Node { addr, ready: false };
    }

    /// Whether all nodes said that they are ready when they were asked last.
    pub fn all_ready(&self) -> bool {
        self.shared.nodes().iter().all(|node| node.ready)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // The listener waits for a connection before it looks.
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

    fn ask(&self) {
        while !self.has_ended() {
            let asked = self.nodes().clone();
            for (number, node) in asked.into_iter().enumerate() {
                let answer = http::request(node.addr, "GET", "/health/ready", &[], b"");
                let ready = answer.is_ok_and(|answer| answer.status == 200);
                let known = &mut self.nodes()[number];
                if known.addr == node.addr {
                    known.ready = ready;
                }
            }
            thread::sleep(ASK_EVERY); // tidy: a balancer asks at intervals, and nothing waits for this thread
        }
    }

    fn take(&self, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.has_ended() {
                return;
            }
            let (Ok(client), Some(node)) = (client, self.next()) else {
                continue;
            };
            // A node that does not take it costs the caller its connection: that is what a test must see.
            if let Ok(server) = TcpStream::connect(node) {
                join(client, server).ok();
            }
        }
    }

    fn next(&self) -> Option<SocketAddr> {
        let nodes = self.nodes();
        let ready: Vec<_> = nodes.iter().filter(|node| node.ready).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        ready.get(turn % ready.len().max(1)).map(|node| node.addr)
    }
}

/// Carries bytes both ways until both have ended.
fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_again, server_again) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || carry(client, server));
    thread::spawn(move || carry(server_again, client_again));
    Ok(())
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    // However it ended, the other side is told.
    io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Write).ok();
}
