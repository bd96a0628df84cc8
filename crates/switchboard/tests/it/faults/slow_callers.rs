//! Callers that start a request and never finish it.

use std::time::Duration;

use testkit::Backend;
use testkit::http::Connection;
use testkit::load::{self, Load, Requests, RunLimit};

use super::test_service::{RequestKind, RequestSender, TestService, builder};

const SLOW: usize = 200;
const OTHERS: usize = 16;

crate::rest::on_both_backends!(slow_callers_do_not_delay_others);

fn slow_callers_do_not_delay_others(backend: Backend) {
    for (incomplete, limit, says) in [
        (
            Incomplete::Headers,
            "HEADER_SECONDS",
            "headers did not arrive",
        ),
        (Incomplete::Body, "BODY_SECONDS", "body did not arrive"),
    ] {
        let limit = format!("SWITCHBOARD_LIMITS__{limit}");
        let service = TestService::from(builder(backend).env(limit, "2"));
        let sender = service.sender(RequestKind::Plain);
        let slow: Vec<Connection> = (0..SLOW).map(|_| begin(&sender, incomplete)).collect();
        let report = load::run(sender.addr, others(&sender));
        assert!(report.is_clean(OTHERS), "{incomplete:?}: {report:?}");
        for mut connection in slow {
            let answer = connection.read_response().expect("an answer");
            assert_eq!(answer.status, 400, "{incomplete:?}: {answer:?}");
            assert!(answer.text().contains(says), "{incomplete:?}: {answer:?}");
            let rest = connection.read_to_close().expect("it is closed");
            assert!(rest.is_empty(), "{incomplete:?}: {rest:?}");
        }
    }
}

/// Which part of its request a slow caller does not finish.
#[derive(Clone, Copy, Debug)]
enum Incomplete {
    Headers,
    Body,
}

fn begin(sender: &RequestSender, incomplete: Incomplete) -> Connection {
    let request = sender.encode(0);
    let sent = match incomplete {
        Incomplete::Headers => request.len() / 4,
        Incomplete::Body => request.len() - 8,
    };
    let mut connection = Connection::open(sender.addr).expect("the service takes connections");
    connection.send(&request[..sent]).expect("it reads");
    connection
}

fn others(sender: &RequestSender) -> Load {
    let sender = sender.clone();
    Load {
        connections: OTHERS,
        warm_up: Duration::ZERO,
        limit: RunLimit::Count(1000),
        requests: Requests::Generated(Box::new(move |number, request| {
            request.extend_from_slice(&sender.encode(number));
        })),
        on_answer: None,
    }
}
