//! SMPP clients, one for each node: each sends messages in a window, gets receipts, and binds again whenever its session
//! ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::smpp::{
    Address, Incoming, Session, SessionOptions, ShortMessage, Status, SubmitAnswer, SubmitError,
};
use async_trait::async_trait;
use serde_json::Value;
use testkit::Server;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::RwLock;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::log::{Answer, FinalState, Log, Report};
use super::requests::PlannedRequest;

const SYSTEM_ID: &str = "faults";
/// The sender of a message is this and the number of its request. A receipt goes back to it.
const SENDER: &str = "SMPP";
/// How many messages of a client may wait for their answers.
const WINDOW: usize = 10;
/// Between two messages of one slot of the window.
const PAUSE: Duration = Duration::from_secs(1);
const BIND_AGAIN_AFTER: Duration = Duration::from_millis(200);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A silent link is tested. One that does not answer in time is closed, and receipts on their way come again, so a busy
/// machine must not look like that.
const ENQUIRE_EVERY: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How to reach the SMPP servers of the nodes.
#[derive(Clone)]
pub(super) struct SmppAccess {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) password: String,
}

/// Creates the user of the clients and returns its password.
pub(super) fn set_up_user(server: &Server) -> String {
    let user = ["smpp-user", "create", "--account", "acme"];
    let more = ["--system-id", SYSTEM_ID, "--max-binds", "0", "--json"];
    let created: Value = server.cli_json(&[&user[..], &more[..]].concat());
    created["password"].as_str().expect("a password").to_owned()
}

/// Running clients. Dropping this closes their connections.
pub(super) struct SmppClients {
    runtime: Runtime,
    state: Arc<State>,
}

struct State {
    log: Arc<Log>,
    password: String,
    /// Held for reading while a message is sent and answered.
    is_sending: RwLock<bool>,
}

impl SmppClients {
    pub(super) fn start(access: &SmppAccess, log: &Arc<Log>) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let state = Arc::new(State {
            log: log.clone(),
            password: access.password.clone(),
            is_sending: RwLock::new(true),
        });
        for address in &access.addresses {
            runtime.spawn(state.clone().run_client(address.to_string()));
        }
        Self { runtime, state }
    }

    /// Returns once each message has an answer or none will come. The clients stay bound and get their receipts.
    pub(super) fn stop_sending(&self) {
        *self.runtime.block_on(self.state.is_sending.write()) = false;
    }
}

impl State {
    /// Binds again and again.
    async fn run_client(self: Arc<Self>, address: String) {
        loop {
            let options = SessionOptions {
                system_id: SYSTEM_ID.to_owned(),
                password: self.password.clone(),
                window: WINDOW,
                connect_timeout: CONNECT_TIMEOUT,
                bind_timeout: CONNECT_TIMEOUT,
                response_timeout: ANSWER_TIMEOUT,
                late_answer: ANSWER_TIMEOUT,
                enquire_every: ENQUIRE_EVERY,
                ..SessionOptions::default()
            };
            let receipts = Arc::new(Receipts(self.log.clone()));
            if let Ok(session) = Session::connect(&address, options, receipts).await {
                let mut senders = JoinSet::new();
                for _ in 0..WINDOW {
                    senders.spawn(self.clone().send(session.clone()));
                }
                session.closed().await;
                senders.join_all().await;
            }
            sleep(BIND_AGAIN_AFTER).await; // tidy: the pace of a client
        }
    }

    /// Sends one message after the other until the session ends or nothing more is to be sent.
    async fn send(self: Arc<Self>, session: Session) {
        while session.is_open() {
            let is_sending = self.is_sending.read().await;
            if !*is_sending {
                return;
            }
            let request = PlannedRequest::make_for_smpp(&self.log);
            self.log.record_request(&request);
            let answered = session.submit(&message(&request)).await;
            let answer = self.read_answer(&request, answered);
            self.log.record_answer(request.number, answer);
            drop(is_sending);
            if timeout(PAUSE, session.closed()).await.is_ok() {
                return;
            }
        }
    }

    fn read_answer(
        &self,
        request: &PlannedRequest,
        answered: Result<SubmitAnswer, SubmitError>,
    ) -> Answer {
        match answered {
            Ok(answer) => match answer.status {
                Status::OK => {
                    let id = std::str::from_utf8(&answer.message_id).ok();
                    let id = id.and_then(|id| id.parse().ok());
                    Answer::Ids(id.into_iter().collect())
                }
                // What REST answers with 503.
                Status::ESME_RSYSERR | Status::ESME_RTHROTTLED => Answer::Refused(503),
                status => {
                    let got = format!("{request:?} got {status} by SMPP");
                    self.log.record_unexpected(got);
                    Answer::Refused(500)
                }
            },
            // It never left the client, so it must not be stored.
            Err(SubmitError::NotSent) => Answer::Refused(503),
            Err(SubmitError::Unknown) => Answer::Missing,
            Err(SubmitError::Encode(error)) => {
                let got = format!("{request:?} cannot be encoded: {error}");
                self.log.record_unexpected(got);
                Answer::Refused(500)
            }
        }
    }
}

fn message(request: &PlannedRequest) -> ShortMessage {
    ShortMessage {
        source: Address::new(5, 0, format!("{SENDER}{}", request.number)),
        destination: Address::new(1, 1, request.to[0].0.to_string()),
        registered_delivery: u8::from(request.is_reported),
        short_message: request.text().into(),
        ..ShortMessage::default()
    }
}

/// Records the receipts of a client and acknowledges each.
struct Receipts(Arc<Log>);

#[async_trait]
impl Incoming for Receipts {
    async fn deliver(&self, message: Box<ShortMessage>) -> Status {
        match read_receipt(&message, self.0.now_ms()) {
            Some((id, report)) => {
                let mut observed = self.0.observed();
                observed.reports.entry(id).or_default().push(report);
            }
            None => self
                .0
                .record_unexpected(format!("not a receipt: {message:?}")),
        }
        Status::OK
    }
}

/// The ID of a message, and its receipt.
fn read_receipt(message: &ShortMessage, at_ms: u64) -> Option<(u64, Report)> {
    let text = std::str::from_utf8(message.text()).ok()?;
    let field = |name: &str| text.split_once(name)?.1.split(' ').next();
    let id = message.tlvs.receipted_message_id()?;
    let id = std::str::from_utf8(&id).ok()?;
    let status = match field(" stat:")? {
        "DELIVRD" => 1,
        _ => 2,
    };
    let final_state: FinalState = (status, field(" err:")?.parse().ok()?);
    let to = std::str::from_utf8(&message.destination.digits).ok()?;
    let report = Report {
        number: to.strip_prefix(SENDER)?.parse().ok()?,
        webhook_id: None,
        final_state,
        received: true,
        at_ms,
    };
    let is_about = text.strip_prefix("id:")?.split(' ').next()?;
    (is_about == id).then_some((id.parse().ok()?, report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_read() {
        let text = "id:77 sub:001 dlvrd:000 submit date:2611181200 done date:2611181201 stat:UNDELIV err:043 text:";
        let mut receipt = ShortMessage {
            destination: Address::new(5, 0, "SMPP12"),
            short_message: text.into(),
            ..ShortMessage::default()
        };
        assert_eq!(read_receipt(&receipt, 5), None, "it names no message");
        receipt
            .tlvs
            .push_c_string(::smpp::tag::RECEIPTED_MESSAGE_ID, b"77");
        let report = Report {
            number: 12,
            webhook_id: None,
            final_state: (2, 43),
            received: true,
            at_ms: 5,
        };
        assert_eq!(read_receipt(&receipt, 5), Some((77, report)));
    }
}
