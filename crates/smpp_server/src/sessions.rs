//! The sessions that are bound to this node, and callbacks to them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{Callback, CallbackAttempt, Delivery};
use domain::ports::{CallbackSender, HistoryStore};
use domain::smpp_user::{ReceiptFormat, SmppUser};
use domain::{CallbackUrl, Origin, ReceiverId, Timestamp};
use engine::identity::smpp_users::SmppBind;
use smpp::{Address, ShortMessage, Status};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::deliver::{self, Content};

/// How many `deliver_sm` of a session may be unanswered.
pub(crate) const MAX_UNANSWERED: usize = 100;
/// How long an attempt waits for `deliver_sm_resp`.
const ANSWER_TIME: Duration = Duration::from_secs(30);
const UNWRITABLE: &str = "it cannot be written as deliver_sm";

/// Sends callbacks: to SMPP sessions of this node, and by HTTP.
pub struct SmppSessions {
    http: Arc<dyn CallbackSender>,
    messages: Arc<dyn HistoryStore>,
    bound: Mutex<Bound>,
    /// Takes turns between the sessions of a user.
    turn: AtomicUsize,
    next_id: AtomicU64,
}

#[derive(Default)]
struct Bound {
    /// The sessions that receive.
    receivers: HashMap<ReceiverId, Vec<Arc<Receiver>>>,
}

/// A session that receives.
struct Receiver {
    id: u64,
    format: ReceiptFormat,
    outgoing: mpsc::Sender<Outgoing>,
    window: Arc<Semaphore>,
}

/// A message for the client of a session.
pub(crate) struct Outgoing {
    pub(crate) message: ShortMessage,
    pub(crate) answered: Answered,
}

/// Where the client's answer goes. Dropped when the session ends without one.
pub(crate) struct Answered {
    answer: oneshot::Sender<Answer>,
    _permit: OwnedSemaphorePermit,
}

/// What became of a delivery.
pub(crate) enum Answer {
    /// The client's answer.
    Status(Status),
    /// It cannot be encoded.
    Unwritable,
}

impl Answered {
    pub(crate) fn answer(self, answer: Answer) {
        // The attempt may have given up.
        let _ = self.answer.send(answer);
    }
}

/// A bound session; dropping it ends the bind.
pub(crate) struct BoundSession {
    sessions: Arc<SmppSessions>,
    id: u64,
    user: Arc<SmppUser>,
    _counted: SmppBind,
}

impl SmppSessions {
    /// `http` delivers all other callbacks; `messages` tells the recipients of messages that were sent to several.
    pub fn new(http: Arc<dyn CallbackSender>, messages: Arc<dyn HistoryStore>) -> Arc<Self> {
        Arc::new(Self {
            http,
            messages,
            bound: Mutex::default(),
            turn: AtomicUsize::new(0),
            next_id: AtomicU64::new(0),
        })
    }

    /// Registers a session that was counted. One that receives gets its messages by the returned channel.
    pub(crate) fn bind(
        self: &Arc<Self>,
        user: &Arc<SmppUser>,
        counted: SmppBind,
        receives: bool,
    ) -> (BoundSession, mpsc::Receiver<Outgoing>) {
        let (outgoing, incoming) = mpsc::channel(MAX_UNANSWERED);
        let mut bound = self.lock();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if receives {
            let session = Arc::new(Receiver {
                id,
                format: user.receipts,
                outgoing,
                window: Arc::new(Semaphore::new(MAX_UNANSWERED)),
            });
            for key in receivers_of(user) {
                let sessions = bound.receivers.entry(key).or_default();
                sessions.push(session.clone());
            }
        }
        metrics::gauge!("switchboard_smpp_sessions").increment(1);
        let session = BoundSession {
            sessions: self.clone(),
            id,
            user: user.clone(),
            _counted: counted,
        };
        (session, incoming)
    }

    fn lock(&self) -> MutexGuard<'_, Bound> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session of the receiver: one with room in its window, if there is one, in turn.
    fn choose(&self, key: ReceiverId) -> Option<Arc<Receiver>> {
        let bound = self.lock();
        let sessions = bound.receivers.get(&key)?;
        let start = self.turn.fetch_add(1, Ordering::Relaxed) % sessions.len().max(1);
        let in_turn = || sessions.iter().cycle().skip(start).take(sessions.len());
        let free = in_turn().find(|session| session.window.available_permits() > 0);
        free.or_else(|| in_turn().next()).cloned()
    }

    /// The recipient of a message whose receipt does not name it.
    async fn find_recipient(&self, callback: &Callback) -> Result<Option<Address>, &'static str> {
        let Some(id) = deliver::unnamed(callback) else {
            return Ok(None);
        };
        let account = Some(callback.account);
        let found = self.messages.find_message_detail(account, id).await;
        let found = found.map_err(|_| "the recipient could not be read")?;
        let to = found.and_then(|message| message.summary.to);
        Ok(to.map(|to| Address::new(1, 1, to.digits().to_owned())))
    }

    /// Hands a callback to a session and waits for the client's answer. If the session ends first, another gets it.
    async fn deliver_to_session(
        &self,
        callback: &Callback,
    ) -> Result<Option<Status>, &'static str> {
        let origin = Origin::from_url(&callback.url);
        let key = ReceiverId::new(callback.account, &origin);
        let recipient = self.find_recipient(callback).await?;
        loop {
            let session = self.choose(key).ok_or("no session is bound")?;
            let message = match deliver::content(callback, session.format, recipient.as_ref()) {
                Content::Message(message) => *message,
                Content::Unwanted => return Ok(None),
                Content::Unreadable => return Err(UNWRITABLE),
            };
            match session.hand_over(message).await {
                Some(Answer::Status(status)) => return Ok(Some(status)),
                Some(Answer::Unwritable) => return Err(UNWRITABLE),
                None => {}
            }
        }
    }
}

impl Receiver {
    /// Gives a message to the session and waits for the client's answer; `None` if the session ended before.
    async fn hand_over(&self, message: ShortMessage) -> Option<Answer> {
        let permit = self.window.clone().acquire_owned().await.ok()?;
        let (answer, answered) = oneshot::channel();
        let outgoing = Outgoing {
            message,
            answered: Answered {
                answer,
                _permit: permit,
            },
        };
        self.outgoing.send(outgoing).await.ok()?;
        answered.await.ok()
    }
}

/// The queues that a session of this user serves: the user's own, and that of all users of its account.
fn receivers_of(user: &SmppUser) -> [ReceiverId; 2] {
    let account = user.access.account;
    let urls = [
        CallbackUrl::smpp(user.system_id.as_str(), ""),
        CallbackUrl::smpp_account(account),
    ];
    urls.map(|url| ReceiverId::new(account, &Origin::from_url(&url)))
}

#[async_trait]
impl CallbackSender for SmppSessions {
    async fn deliver(&self, callback: &Callback, secrets: &[&str], now: Timestamp) -> Delivery {
        if !callback.url.is_smpp() {
            return self.http.deliver(callback, secrets, now).await;
        }
        let began = Instant::now();
        let answer = tokio::time::timeout(ANSWER_TIME, self.deliver_to_session(callback)).await;
        let answer = answer.unwrap_or(Err("the client did not answer in time"));
        let (received, reason) = match answer {
            Ok(None) => (
                true,
                "the client asked for no receipt about this".to_owned(),
            ),
            Ok(Some(Status::OK)) => (true, "received".to_owned()),
            Ok(Some(status)) => (false, format!("the client answered {status}")),
            Err(reason) => (false, reason.to_owned()),
        };
        Delivery {
            received,
            attempt: CallbackAttempt {
                at: now,
                status: None,
                elapsed_ms: u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX),
                body: Vec::new(),
                address: None,
                reason,
            },
        }
    }

    fn can_reach(&self, receiver: ReceiverId) -> bool {
        !receiver.is_smpp() || self.lock().receivers.contains_key(&receiver)
    }
}

impl Drop for BoundSession {
    fn drop(&mut self) {
        let mut bound = self.sessions.lock();
        for key in receivers_of(&self.user) {
            if let Some(sessions) = bound.receivers.get_mut(&key) {
                sessions.retain(|session| {
                    let ends = session.id == self.id;
                    if ends {
                        // Deliveries that wait for its window go to another session.
                        session.window.close();
                    }
                    !ends
                });
                if sessions.is_empty() {
                    bound.receivers.remove(&key);
                }
            }
        }
        drop(bound);
        metrics::gauge!("switchboard_smpp_sessions").decrement(1);
    }
}
