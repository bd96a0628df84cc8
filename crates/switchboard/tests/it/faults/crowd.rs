//! Callers that each send an order as soon as the one before is answered, and write down what they are told.

use std::io;
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
    pub(super) fn enter(sender: &Sender, size: usize, ledger: &Arc<Ledger>) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let open = |_| Connection::open(sender.addr).expect("the service takes connections");
        let connections: Vec<_> = (0..size).map(open).collect();
        let callers = connections.into_iter().map(|connection| {
            let (sender, ledger, enough) =
                (sender.clone(), Arc::clone(ledger), Arc::clone(&enough));
            thread::spawn(move || keep_sending(connection, &sender, &ledger, &enough))
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

fn keep_sending(mut connection: Connection, sender: &Sender, ledger: &Ledger, enough: &AtomicBool) {
    while !enough.load(Ordering::SeqCst) {
        let order = ledger.open();
        let answer = exchange(&mut connection, &sender.encode(order.number));
        ledger.close(order, &answer);
        if !answer.is_ok_and(|answer| stays_open(&answer)) {
            return;
        }
    }
}

fn exchange(connection: &mut Connection, order: &[u8]) -> io::Result<Response> {
    connection.send(order)?;
    connection.read_response()
}

fn stays_open(answer: &Response) -> bool {
    answer.header("connection") != Some("close")
}
