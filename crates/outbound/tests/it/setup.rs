//! Clients and callbacks for the tests.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{Callback, CallbackKind, Claim, Delivery};
use domain::{AccountId, CallbackId, CallbackUrl, Timestamp};
use outbound::dial::public_roots;
use outbound::{CallbackClient, CallbackOptions, DialerOptions, Guard, Resolve};

/// The secret of the specification's examples.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(crate) const PAYLOAD: &str = r#"{"id":"7","status":2,"error":43}"#;

/// For tests that wait for a timeout.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// Answers from a list, repeating the last entry, and counts the lookups.
#[derive(Default)]
pub(crate) struct ScriptedResolver {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    lookups: Mutex<usize>,
}

impl ScriptedResolver {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let ips = |texts: &&[&str]| texts.iter().map(|ip| ip.parse().expect(ip)).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(ips).collect()),
            lookups: Mutex::default(),
        })
    }

    pub(crate) fn lookups(&self) -> usize {
        *self.lookups.lock().expect("not poisoned")
    }
}

#[async_trait]
impl Resolve for ScriptedResolver {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<IpAddr>> {
        *self.lookups.lock().expect("not poisoned") += 1;
        let mut answers = self.answers.lock().expect("not poisoned");
        let last = answers.len() <= 1;
        let answer = if last {
            answers.front().cloned()
        } else {
            answers.pop_front()
        };
        answer.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

pub(crate) fn account() -> AccountId {
    AccountId::new(1).expect("in range")
}

/// Options that permit loopback.
pub(crate) fn options() -> CallbackOptions {
    CallbackOptions {
        dialer: DialerOptions {
            guard: Guard::new(Guard::loopback()),
            resolver: ScriptedResolver::new(&[]),
            source: Vec::new(),
            tls: public_roots(),
            proxy: None,
        },
        try_timeout: Duration::from_secs(10),
    }
}

pub(crate) fn client() -> CallbackClient {
    CallbackClient::new(options())
}

pub(crate) fn callback(url: &str) -> Callback {
    Callback {
        id: CallbackId::new(7).expect("in range"),
        message: None,
        kind: CallbackKind::Report,
        account: AccountId::new(1).expect("in range"),
        url: CallbackUrl::parse(url).expect(url),
        payload: PAYLOAD.to_owned(),
        created_at: now(),
        tries: 0,
        claim: Claim {
            due_at: now(),
            attempt: 1,
        },
        trace: None,
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_731_672_000).expect("in range")
}

/// One attempt with the default secret and time.
pub(crate) async fn deliver(client: &CallbackClient, url: &str) -> Delivery {
    client.deliver(&callback(url), &[SECRET], now()).await
}
