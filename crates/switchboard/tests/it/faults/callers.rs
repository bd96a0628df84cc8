//! Callers that each send a request as soon as the previous one is answered, and record the answers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use testkit::http::{Connection, Response};

use super::answer_log::AnswerLog;
use super::test_service::RequestSender;

/// Callers with one connection each; all connections are open before the first request. A caller stops when its
/// connection ends, so it never reaches another process that gets the port of a dead service.
pub(super) struct Callers {
    should_stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
}

impl Callers {
    pub(super) fn start(sender: &RequestSender, size: usize, answer_log: &Arc<AnswerLog>) -> Self {
        let (sender, answer_log) = (sender.clone(), Arc::clone(answer_log));
        Self::start_with(sender.addr, size, move |exchange| {
            let request = answer_log.next_request();
            answer_log.record(request, &exchange(&sender.encode(request.number)));
        })
    }

    /// Callers that run `turn` repeatedly. It sends the bytes of one request and records the answer.
    pub(super) fn start_with(
        addr: SocketAddr,
        size: usize,
        turn: impl Fn(&mut dyn FnMut(&[u8]) -> io::Result<Response>) + Send + Sync + 'static,
    ) -> Self {
        let should_stop = Arc::new(AtomicBool::new(false));
        let turn = Arc::new(turn);
        let open = |_| Connection::open(addr).expect("the service takes connections");
        let connections: Vec<_> = (0..size).map(open).collect();
        let callers = connections.into_iter().map(|mut connection| {
            let (turn, should_stop) = (Arc::clone(&turn), Arc::clone(&should_stop));
            thread::spawn(move || {
                let mut open = true;
                while open && !should_stop.load(Ordering::SeqCst) {
                    turn(&mut |request| {
                        let answer = exchange(&mut connection, request);
                        open = answer.as_ref().is_ok_and(stays_open);
                        answer
                    });
                }
            })
        });
        let callers = callers.collect();
        Self {
            should_stop,
            callers,
        }
    }

    /// Returns once all callers have stopped because the service closed their connections.
    pub(super) fn join(self) {
        for caller in self.callers {
            caller.join().expect("no caller panics");
        }
    }

    /// Stops each caller after its next answer.
    pub(super) fn stop(self) {
        self.should_stop.store(true, Ordering::SeqCst);
        self.join();
    }
}

fn exchange(connection: &mut Connection, request: &[u8]) -> io::Result<Response> {
    connection.send(request)?;
    connection.read_response()
}

fn stays_open(answer: &Response) -> bool {
    answer.header("connection") != Some("close")
}
