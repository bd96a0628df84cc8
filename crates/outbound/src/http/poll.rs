//! Asks the provider for reports that it does not send.
//!
//! Each message that was taken has a row in the database until its report comes. All nodes look for rows that are due;
//! the one that claims a row moves it on and asks. A lost answer therefore costs one interval.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::delivery::QueuedMessage;
use domain::ports::{AwaitedReport, DuePoll, ReceiptError};
use http::StatusCode;
use tokio::task::JoinSet;

use super::request::RequestRules;
use super::values::{Subject, Values};
use super::{DEFAULT_PAUSE, HttpCarrier};

/// The longest pause between two searches for messages that are due.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);
/// The pause after a message could not be stored.
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// How the provider is asked for reports.
#[derive(Debug, Clone)]
pub struct PollRules {
    pub request: RequestRules,
    pub interval: Duration,
}

/// What the answer to a question means.
#[derive(Debug, PartialEq, Eq)]
enum Polled {
    /// The message has ended, and that is stored.
    Ended,
    /// Its report is still awaited.
    Open,
    /// The provider gave no answer that could be used.
    Failed(String),
}

/// How many of a carrier's window are for questions, if it asks for reports.
pub(super) fn slots(window: usize) -> usize {
    (window / 10).max(1)
}

/// Asks about messages that are due. Runs until it is dropped, or the carrier is.
pub(super) async fn run(carrier: Weak<HttpCarrier>, rules: PollRules) {
    let pause = (rules.interval / 2).min(LONGEST_SEARCH);
    loop {
        tokio::time::sleep(pause).await;
        loop {
            let Some(carrier) = carrier.upgrade() else {
                return;
            };
            if !carrier.poll_page(&rules).await {
                break;
            }
        }
    }
}

impl HttpCarrier {
    /// Stores that the report of a message must be asked for. Waits as long as that cannot be stored: without it the
    /// message would have no report.
    pub(super) async fn await_report(&self, queued: &QueuedMessage, theirs: Option<&str>) {
        let Some(rules) = &self.settings.poll else {
            return;
        };
        if theirs.is_none() && rules.request.has_provider_id() {
            tracing::debug!(carrier = self.settings.name, message_id = %queued.id, "the answer has no ID to ask for a report by");
            return;
        }
        let awaited = AwaitedReport {
            carrier: self.settings.name.clone(),
            id: queued.id,
            provider_id: theirs.unwrap_or_default().to_owned(),
            first_after: rules.interval,
            expires_at: queued.expires_at,
        };
        while let Err(error) = self.ports.polls.add(awaited.clone()).await {
            if error == ReceiptError::Stopping || queued.expires_at <= self.ports.clock.now() {
                return;
            }
            tracing::debug!(carrier = self.settings.name, %error, "a message to ask about could not be stored; trying again");
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Asks about some messages that are due. Returns whether there may be more.
    async fn poll_page(self: &Arc<Self>, rules: &PollRules) -> bool {
        if self.health.is_down() || !self.health.wait_out_pause().await {
            return false;
        }
        let slots = slots(self.settings.window);
        let limit = u32::try_from(slots).unwrap_or(u32::MAX);
        let name = &self.settings.name;
        let claimed = self.ports.polls.claim(name, rules.interval, limit);
        let due = match claimed.await {
            Ok(due) => due,
            Err(error) => {
                tracing::debug!(carrier = name, %error, "messages to ask about cannot be read; trying again later");
                return false;
            }
        };
        let is_full = due.len() >= slots;
        let mut asking = JoinSet::new();
        for poll in due {
            let (carrier, rules) = (self.clone(), rules.clone());
            asking.spawn(async move { (poll.id, carrier.ask(&rules, &poll).await) });
        }
        let mut ended = Vec::new();
        for (id, polled) in asking.join_all().await {
            self.log_polled(&polled);
            if polled == Polled::Ended {
                ended.push(id);
            }
        }
        if !ended.is_empty()
            && let Err(error) = self.ports.polls.remove(name, &ended).await
        {
            // A repeated report changes nothing.
            tracing::debug!(carrier = name, %error, "ended messages will be asked about again");
        }
        is_full
    }

    /// Asks about one message.
    async fn ask(&self, rules: &PollRules, poll: &DuePoll) -> Polled {
        drop(self.pace.turn().await);
        let values = Values {
            subject: Subject::Poll {
                id: poll.id,
                provider_id: &poll.provider_id,
            },
            at: self.ports.clock.now(),
        };
        let request = match rules.request.build(&values) {
            Ok(request) => request,
            Err(error) => return Polled::Failed(error.to_string()),
        };
        let answer = match self.client.send(request).await {
            Ok(answer) => answer,
            Err(why) => return Polled::Failed(why.to_string()),
        };
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            let pause = answer.retry_after.unwrap_or(DEFAULT_PAUSE);
            self.health.slow_down(pause);
            return Polled::Open;
        }
        // The provider may not know the message yet.
        if answer.status == StatusCode::NOT_FOUND {
            return Polled::Open;
        }
        if !answer.status.is_success() {
            return Polled::Failed(format!("the provider answers {}", answer.status.as_u16()));
        }
        let Some(fields) = &answer.fields else {
            return Polled::Failed("the answer is neither JSON nor a form".to_owned());
        };
        match self.apply_report(poll.id, fields).await {
            None => Polled::Failed("the answer has no state where this carrier has one".to_owned()),
            Some(Ok(true)) => Polled::Ended,
            Some(Ok(false)) => Polled::Open,
            Some(Err(error)) => {
                tracing::debug!(carrier = self.settings.name, %error, "a report could not be stored; it will be asked for again");
                Polled::Open
            }
        }
    }

    /// Logs when questions begin to fail and when they work again.
    fn log_polled(&self, polled: &Polled) {
        let carrier = &self.settings.name;
        match polled {
            Polled::Failed(why) => {
                if !self.is_poll_failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(carrier, why, "the provider gives no reports when asked");
                }
            }
            Polled::Ended | Polled::Open => {
                if self.is_poll_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(carrier, "the provider gives reports again when asked");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_a_part_of_the_window() {
        for (window, expected) in [(1, 1), (9, 1), (10, 1), (50, 5), (10_000, 1_000)] {
            assert_eq!(slots(window), expected, "{window}");
        }
    }
}
