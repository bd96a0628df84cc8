//! Callers that begin a request and never end it.

use std::time::Duration;

use testkit::Backend;
use testkit::http::Connection;
use testkit::load::{self, Load, Requests, Until};

use super::subject::{Sender, Shape, Subject, builder};

const SLOW: usize = 200;
const OTHERS: usize = 16;

crate::rest::on_both_backends!(slow_callers_hold_nobody_up);

fn slow_callers_hold_nobody_up(backend: Backend) {
    for (half, limit, says) in [
        (Half::Headers, "HEADER_SECONDS", "headers did not arrive"),
        (Half::Body, "BODY_SECONDS", "body did not arrive"),
    ] {
        let limit = format!("SWITCHBOARD_LIMITS__{limit}");
        let subject = Subject::from(builder(backend).env(limit, "2"));
        let sender = subject.sender(Shape::Plain);
        let slow: Vec<Connection> = (0..SLOW).map(|_| begin(&sender, half)).collect();
        let report = load::run(sender.addr, others(&sender));
        assert!(report.is_clean(OTHERS), "{half:?}: {report:?}");
        for mut connection in slow {
            let answer = connection.read_response().expect("an answer");
            assert_eq!(answer.status, 400, "{half:?}: {answer:?}");
            assert!(answer.text().contains(says), "{half:?}: {answer:?}");
            let rest = connection.read_to_close().expect("it is closed");
            assert!(rest.is_empty(), "{half:?}: {rest:?}");
        }
    }
}

/// How far a slow caller gets.
#[derive(Clone, Copy, Debug)]
enum Half {
    Headers,
    Body,
}

fn begin(sender: &Sender, half: Half) -> Connection {
    let order = sender.encode(0);
    let sent = match half {
        Half::Headers => order.len() / 4,
        Half::Body => order.len() - 8,
    };
    let mut connection = Connection::open(sender.addr).expect("the service takes connections");
    connection.send(&order[..sent]).expect("it reads");
    connection
}

fn others(sender: &Sender) -> Load {
    let sender = sender.clone();
    Load {
        connections: OTHERS,
        warm_up: Duration::ZERO,
        until: Until::Count(1000),
        requests: Requests::Made(Box::new(move |number, request| {
            request.extend_from_slice(&sender.encode(number));
        })),
        on_answer: None,
    }
}
