//! The sessions that are bound to this node, and callbacks to them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{Callback, CallbackAttempt, Delivery};
use domain::ports::{CallbackSender, HistoryStore};
use domain::smpp_user::{BindKind, ReceiptFormat, SmppSession, SmppUser};
use domain::{CallbackUrl, Origin, ReceiverId, Timestamp};
use engine::identity::smpp_users::{FollowedUser, SmppBind};
use smpp::{Address, ShortMessage, Status};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use crate::activity::{Activity, Peer};
use crate::deliver::{self, Content};
use crate::outgoing::{Answer, Answered, Outgoing};

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
    /// All sessions, by number.
    activities: HashMap<u64, Arc<Activity>>,
    /// Sessions that were reported and have ended since.
    ended: Vec<u64>,
    /// How many reports were made.
    reports: u64,
}

/// A session that receives.
struct Receiver {
    id: u64,
    user: FollowedUser,
    outgoing: mpsc::Sender<Outgoing>,
    window: Semaphore,
}

/// A client that may bind.
pub(crate) struct NewSession {
    pub(crate) user: Arc<SmppUser>,
    pub(crate) followed: FollowedUser,
    pub(crate) kind: BindKind,
    pub(crate) peer: Peer,
    pub(crate) now: Timestamp,
}

/// A bound session; dropping it ends the bind.
pub(crate) struct BoundSession {
    sessions: Arc<SmppSessions>,
    id: u64,
    user: Arc<SmppUser>,
    activity: Arc<Activity>,
    _counted: SmppBind,
}

impl BoundSession {
    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Lets the user's other sessions have what it would receive.
    pub(crate) fn stop_receiving(&self) {
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
    }
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
        new: NewSession,
        counted: SmppBind,
    ) -> (BoundSession, mpsc::Receiver<Outgoing>) {
        let (outgoing, incoming) = mpsc::channel(MAX_UNANSWERED);
        let mut bound = self.lock();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let activity = Activity::new(id, new.user.id, new.kind, new.peer, new.now);
        let activity = Arc::new(activity);
        bound.activities.insert(id, activity.clone());
        if new.kind != BindKind::Transmitter {
            let session = Arc::new(Receiver {
                id,
                user: new.followed,
                outgoing,
                window: Semaphore::new(MAX_UNANSWERED),
            });
            for key in receivers_of(&new.user) {
                let sessions = bound.receivers.entry(key).or_default();
                sessions.push(session.clone());
            }
        }
        metrics::gauge!("switchboard_smpp_sessions").increment(1);
        let session = BoundSession {
            sessions: self.clone(),
            id,
            user: new.user,
            activity,
            _counted: counted,
        };
        (session, incoming)
    }

    /// What changed since the last report: at most so many sessions, those first that were not reported for the longest
    /// time, and the numbers of sessions that ended.
    pub(crate) fn take_report(&self, most: usize, now: Timestamp) -> (Vec<SmppSession>, Vec<u64>) {
        let mut bound = self.lock();
        bound.reports += 1;
        let (number, ended) = (bound.reports, std::mem::take(&mut bound.ended));
        let all = bound.activities.values();
        let mut due: Vec<(u64, Arc<Activity>)> = all
            .filter_map(|activity| Some((activity.due_since(now)?, activity.clone())))
            .collect();
        // Making reports takes longer, and binds wait for the lock.
        drop(bound);
        due.sort_unstable_by_key(|(reported_in, _)| *reported_in);
        let due = due.iter().take(most);
        let changed = due.map(|(_, activity)| activity.report(number, now));
        let mut changed: Vec<SmppSession> = changed.collect();
        // A session that ends from now on is known to be reported, and is in the next report as ended.
        let bound = self.lock();
        changed.retain(|session| bound.activities.contains_key(&session.number));
        (changed, ended)
    }

    /// The report was not stored, so its content is in the next one, too.
    pub(crate) fn put_back_report(&self, changed: &[SmppSession], ended: Vec<u64>) {
        let mut bound = self.lock();
        bound.ended.extend(ended);
        for session in changed {
            if let Some(activity) = bound.activities.get(&session.number) {
                activity.set_changed();
            }
        }
    }

    /// Makes the next report contain all sessions.
    pub(crate) fn report_all(&self) {
        for activity in self.lock().activities.values() {
            activity.set_changed();
        }
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
            let message = match deliver::content(callback, session.format(), recipient.as_ref()) {
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
    /// How the user wants its receipts at the moment.
    fn format(&self) -> ReceiptFormat {
        let user = self.user.borrow();
        user.as_ref().map(|user| user.receipts).unwrap_or_default()
    }

    /// Gives a message to the session and waits for the client's answer; `None` if the session ended before. An attempt
    /// that gives up leaves the window.
    async fn hand_over(&self, message: ShortMessage) -> Option<Answer> {
        let _permit = self.window.acquire().await.ok()?;
        let (answered, answer) = Answered::channel();
        let outgoing = Outgoing { message, answered };
        self.outgoing.send(outgoing).await.ok()?;
        answer.await.ok()
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
        self.stop_receiving();
        let mut bound = self.sessions.lock();
        bound.activities.remove(&self.id);
        if self.activity.is_reported() {
            bound.ended.push(self.id);
        }
        drop(bound);
        metrics::gauge!("switchboard_smpp_sessions").decrement(1);
    }
}

#[cfg(test)]
mod tests;
