//! Refused requests of programs, by token. They are collected in memory and stored in batches, so that no request waits
//! for it; if there are too many, some are left out.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use domain::ports::{RefusedRequest, RequestLogStore, StoreError};
use domain::{Access, AccountId, Clock};
use jiff::SignedDuration;
use tokio::task::AbortHandle;

/// How many requests of an account are kept.
pub const KEPT: u32 = 200;
const STORE_EVERY: Duration = Duration::from_secs(2);
/// How many requests wait to be stored: of all accounts, and of one.
const MAX_WAITING: usize = 500;
const MAX_WAITING_OF_ACCOUNT: usize = 50;
const MAX_MESSAGE_CHARS: usize = 300;
const STEP: SignedDuration = SignedDuration::from_micros(1);

/// The answer to a refused request.
#[derive(Debug, Clone, Copy)]
pub struct RefusedAnswer<'a> {
    pub method: &'a str,
    /// The address with names instead of values.
    pub route: &'a str,
    pub status: u16,
    pub error: Option<u16>,
    pub message: &'a str,
}

pub struct RequestLog {
    store: Arc<dyn RequestLogStore>,
    clock: Arc<dyn Clock>,
    waiting: Mutex<Vec<RefusedRequest>>,
    task: OnceLock<AbortHandle>,
}

impl RequestLog {
    /// Must be called inside a tokio runtime.
    pub fn start(store: Arc<dyn RequestLogStore>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let log = Arc::new(Self {
            store,
            clock,
            waiting: Mutex::default(),
            task: OnceLock::new(),
        });
        let weak = Arc::downgrade(&log);
        let storing = supervise::spawn("request-log", move || run(weak.clone()));
        log.task.get_or_init(|| storing.abort_handle());
        log
    }

    /// Stops, and stores what waits.
    pub async fn stop(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
        self.store_waiting().await;
    }

    /// Notes a refused request of a known token.
    pub fn record(&self, access: &Access, answer: RefusedAnswer<'_>) {
        let mut at = self.clock.now();
        let mut waiting = self.waiting.lock().expect("no holder panics");
        let of_account = waiting
            .iter()
            .filter(|other| other.account == access.account);
        if waiting.len() >= MAX_WAITING || of_account.clone().count() >= MAX_WAITING_OF_ACCOUNT {
            return;
        }
        // Requests of an account are stored by their time.
        if let Some(last) = of_account.map(|other| other.at).max()
            && at <= last
        {
            at = last.saturating_add(STEP).unwrap_or(last);
        }
        waiting.push(RefusedRequest {
            account: access.account,
            token: access.name.clone(),
            at,
            method: answer.method.to_owned(),
            route: answer.route.to_owned(),
            status: answer.status,
            error: answer.error,
            message: without_values(answer.message),
        });
    }

    /// The refused requests of a token, the newest first.
    pub async fn list(
        &self,
        account: AccountId,
        token: &str,
    ) -> Result<Vec<RefusedRequest>, StoreError> {
        self.store.list_refused_requests(account, token, KEPT).await
    }

    async fn store_waiting(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("no holder panics"));
        if waiting.is_empty() {
            return;
        }
        if let Err(error) = self.store.record_refused_requests(&waiting, KEPT).await {
            tracing::warn!(%error, "cannot store which requests were refused");
        }
    }
}

async fn run(log: Weak<RequestLog>) {
    let mut tick = tokio::time::interval(STORE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(log) = log.upgrade() else { return };
        log.store_waiting().await;
    }
}

/// How messages about one field begin. Its name is one of ours.
const FIELD: &str = "Invalid value for field '";

/// A message without quoted values and long numbers, which may be texts, codes or phone numbers of people.
fn without_values(message: &str) -> String {
    let (field, message) = match message
        .strip_prefix(FIELD)
        .and_then(|it| it.split_once("':"))
    {
        Some((name, rest)) => (format!("{FIELD}{name}':"), rest),
        None => (String::new(), message),
    };
    let mut text = field;
    let mut closing = None;
    let mut before = ' ';
    let mut digits = String::new();
    let mut letters = message.chars().take(MAX_MESSAGE_CHARS).peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        if let Some(quote) = closing {
            if letter == quote && !next.is_alphanumeric() {
                text.push('…');
                text.push(letter);
                closing = None;
            }
            before = letter;
            continue;
        }
        if letter.is_ascii_digit() {
            digits.push(letter);
            before = letter;
            continue;
        }
        push_number(&mut text, &mut digits);
        text.push(letter);
        closing = match letter {
            '"' => Some('"'),
            '`' => Some('`'),
            '‘' => Some('’'),
            '“' => Some('”'),
            // Else it is an apostrophe.
            '\'' if !before.is_alphanumeric() => Some('\''),
            _ => None,
        };
        before = letter;
    }
    push_number(&mut text, &mut digits);
    if closing.is_some() {
        text.push('…');
    }
    text
}

/// Short numbers are limits and places in lists.
fn push_number(text: &mut String, digits: &mut String) {
    if digits.len() > 4 {
        digits.clear();
        text.push('…');
    } else {
        text.push_str(digits);
        digits.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_request_are_left_out() {
        for (message, expected) in [
            ("give at least one character", "give at least one character"),
            ("to: '+37120000001' is no number", "to: '…' is no number"),
            (
                "the number +37120000001 is too long",
                "the number +… is too long",
            ),
            (
                "Invalid value for field 'from': 'Acme Shop' is long",
                "Invalid value for field 'from': '…' is long",
            ),
            ("at most 1000 recipients", "at most 1000 recipients"),
            (
                "the account's limit isn't reached",
                "the account's limit isn't reached",
            ),
            (
                "invalid type: string \"my secret\", expected",
                "invalid type: string \"…\", expected",
            ),
            ("‘Acme’ is not approved", "‘…’ is not approved"),
            ("'it isn't closed", "'…"),
            ("'it isn't' here", "'…' here"),
        ] {
            assert_eq!(without_values(message), expected, "{message}");
        }
        assert_eq!(without_values(&"x".repeat(1_000)).len(), MAX_MESSAGE_CHARS);
    }
}
