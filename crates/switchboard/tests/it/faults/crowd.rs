//! Callers that each send an order as soon as the one before is answered, and write down what they are told.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use testkit::http::{Connection, Response};

use super::ledger::Ledger;
use super::subject::Sender;

/// Callers with a connection each, all open before the first order. A caller whose connection ends goes home: so no
/// caller can ever reach whatever else may get the port of a service that is gone.
pub(super) struct Crowd {
    enough: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// Callers that send plain or keyed orders.
    pub(super) fn enter(sender: &Sender, size: usize, ledger: &Arc<Ledger>) -> Self {
        let (sender, ledger) = (sender.clone(), Arc::clone(ledger));
        Self::of(sender.addr, size, move |exchange| {
            let order = ledger.open();
            ledger.close(order, &exchange(&sender.encode(order.number)));
        })
    }

    /// Callers that do the same again and again: send the bytes of a request, and write down the answer.
    pub(super) fn of(
        addr: SocketAddr,
        size: usize,
        turn: impl Fn(&mut dyn FnMut(&[u8]) -> io::Result<Response>) + Send + Sync + 'static,
    ) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let turn = Arc::new(turn);
        let open = |_| Connection::open(addr).expect("the service takes connections");
        let connections: Vec<_> = (0..size).map(open).collect();
        let callers = connections.into_iter().map(|mut connection| {
            let (turn, enough) = (Arc::clone(&turn), Arc::clone(&enough));
            thread::spawn(move || {
                let mut open = true;
                while open && !enough.load(Ordering::SeqCst) {
                    turn(&mut |order| {
                        let answer = exchange(&mut connection, order);
                        open = answer.as_ref().is_ok_and(stays_open);
                        answer
                    });
                }
            })
        });
        let callers = callers.collect();
        Self { enough, callers }
    }

    /// Returns once everyone has gone home because the service closed the connections.
    pub(super) fn wait(self) {
        for caller in self.callers {
            caller.join().expect("no caller panics");
        }
    }

    /// Sends everyone home after their next answer.
    pub(super) fn leave(self) {
        self.enough.store(true, Ordering::SeqCst);
        self.wait();
    }
}

fn exchange(connection: &mut Connection, order: &[u8]) -> io::Result<Response> {
    connection.send(order)?;
    connection.read_response()
}

fn stays_open(answer: &Response) -> bool {
    answer.header("connection") != Some("close")
}
