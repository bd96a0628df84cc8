//! Signing in to the dashboard: by a one-time link or a password, with a second factor if there is one; and sessions.

mod second_factor;
mod sessions;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use domain::access::attempts::AttemptLimit;
use domain::access::token::TokenHash;
use domain::person::{Device, Email, Password, Role};
use domain::ports::{AttemptKey, IdentityStore, NewSession, StoreError};
use domain::{AccountId, Clock, PersonId, Timestamp, TokenSecret};
use jiff::SignedDuration;

use crate::audit::{Action, Actor, Audit, RecordedChange};
use crate::entropy;
use crate::identity::attempts::AttemptCounter;
use crate::identity::hasher::{Busy, Hasher};
use crate::identity::throttle;

use sessions::KnownSessions;
pub use sessions::SessionError;

const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
pub const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// What a session is for, in the audit log.
const DASHBOARD: &str = "dashboard";

/// How long a pending sign-in waits for its second factor.
pub const PENDING_SIGN_IN_LIFETIME: SignedDuration = SignedDuration::from_mins(5);

/// How long a browser is remembered after a person signed in with it.
pub const BROWSER_LIFETIME: SignedDuration = SignedDuration::from_hours(180 * 24);

/// Limit of wrong passwords per address.
const BY_ADDRESS: AttemptLimit = AttemptLimit::Steady {
    burst: 10,
    forgiven_after: SignedDuration::from_secs(6),
};
/// Limit of wrong passwords per person, from anywhere. Browsers that the person has signed in with before are each
/// counted apart, so that a stranger cannot lock the person out.
pub(crate) const BY_PERSON: AttemptLimit = AttemptLimit::Steady {
    burst: 20,
    forgiven_after: SignedDuration::from_secs(30),
};
/// Limit of wrong codes per person. They come from somebody who knows the password.
const BY_CODES: AttemptLimit = AttemptLimit::Growing {
    burst: 10,
    pause_s: 60,
};

/// Why a sign-in was refused.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The address is unknown or the password is wrong. Callers do not learn which.
    #[error("the email address or the password is wrong")]
    Wrong,
    /// The code is not the current one, or was used before.
    #[error("the code is wrong or was used before")]
    WrongCode,
    /// The pending sign-in expired or saw too many wrong codes.
    #[error("the sign-in has to begin anew")]
    Over,
    #[error("too many wrong passwords")]
    TooMany {
        /// Seconds until the next attempt.
        retry_after_s: u32,
    },
    /// Too many password checks are waiting.
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a right password, with a secret for the browser.
#[derive(Clone, PartialEq, Eq)]
pub enum SignInStep {
    Session(String),
    /// A pending sign-in, which needs a second factor.
    PendingSignIn(String),
}

/// What is known about the browser of a sign-in.
#[derive(Clone, Copy)]
pub struct SignInContext<'a> {
    pub device: &'a Device,
    /// The secret of a browser that somebody signed in with before.
    pub browser: Option<&'a str>,
    /// A session that the new one replaces.
    pub replaced: Option<&'a str>,
}

/// Sign-in links, passwords and sessions. Secrets are stored hashed.
pub struct SignIn {
    store: Arc<dyn IdentityStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
    /// This node's own count, checked before the database, which counts for all nodes.
    by_address: AttemptCounter<IpAddr>,
    known_sessions: KnownSessions,
}

impl SignIn {
    pub fn new(store: Arc<dyn IdentityStore>, clock: Arc<dyn Clock>, hasher: Arc<Hasher>) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
            hasher,
            by_address: AttemptCounter::new(BY_ADDRESS),
            known_sessions: KnownSessions::default(),
        }
    }

    /// Creates a one-time sign-in link, valid for a day, and returns its secret.
    pub async fn create_link(&self, by: &Actor, account: AccountId) -> Result<String, StoreError> {
        let secret = secret();
        let expires = self.clock.now() + LINK_LIFETIME;
        let (subject, detail) = ("one-time sign-in link", format!("until {expires}"));
        let recorded = self
            .audit
            .record(by, Some(account), Action::LinkCreate, subject, detail)
            .await?;
        let hash = TokenHash::from_secret(&secret);
        let created = self.store.create_sign_in_link(&hash, account, expires);
        recorded.done(created.await).await?;
        Ok(secret)
    }

    /// Whether a link can still be redeemed.
    pub async fn is_link_open(&self, link: &str) -> Result<bool, StoreError> {
        let link = TokenHash::from_secret(link);
        self.store.has_sign_in_link(&link, self.clock.now()).await
    }

    /// Redeems a link. Returns the secret of the new session, or `None` if the link is unknown, used or expired.
    pub async fn redeem(&self, device: &Device, link: &str) -> Result<Option<String>, StoreError> {
        let (secret, session) = new_session(self.clock.now(), device);
        let link = TokenHash::from_secret(link);
        if !self.store.redeem_sign_in_link(&link, &session).await? {
            return Ok(None);
        }
        // Recorded afterwards, because anyone may try a link. If that fails, the caller does not get the secret.
        let by = Actor::link(address(device));
        let _done = self
            .audit
            .record(&by, None, Action::SessionOpen, DASHBOARD, "")
            .await?;
        Ok(Some(secret))
    }

    /// Signs a person in. An unknown or malformed address takes as long as a wrong password, counts as one and is
    /// recorded as one.
    pub async fn with_password(
        &self,
        email: &str,
        password: Password,
        visit: &SignInContext<'_>,
    ) -> Result<SignInStep, SignInError> {
        let device = visit.device;
        let network = self.begin_on_node(device)?;
        let email = email.parse::<Email>().ok();
        let shown = email.as_ref().map_or("", Email::as_str);
        let credentials = match &email {
            Some(email) => self.store.find_credentials(email).await?,
            None => None,
        };
        let person = credentials
            .as_ref()
            .map(|credentials| credentials.person.id);
        let counted = match self.known_browser(visit.browser, person).await? {
            Some(browser) => attempt_key("browser", &browser),
            None => attempt_key("email", shown),
        };
        let keys = [network_key(network), (counted, BY_PERSON)];
        self.begin_attempt(&keys).await?;
        let stored = credentials
            .as_ref()
            .map(|credentials| credentials.password.clone());
        let right = self.hasher.verify(password, stored).await?;
        let by = by(shown, device);
        let account = credentials
            .as_ref()
            .and_then(|credentials| credentials.person.account);
        let Some(credentials) = credentials.filter(|_| right) else {
            let why = "the address or the password was wrong";
            self.record_refused(&by, account, why).await?;
            return Err(refused(device, SignInError::Wrong));
        };
        let person = credentials.person;
        self.forgive(network, &keys).await?;
        let now = self.clock.now();
        if credentials.has_second_factor {
            let pending = secret();
            let (hash, expires) = (
                TokenHash::from_secret(&pending),
                now + PENDING_SIGN_IN_LIFETIME,
            );
            self.store
                .create_pending_sign_in(person.id, &hash, expires, now)
                .await?;
            return Ok(SignInStep::PendingSignIn(pending));
        }
        let recorded = self.record_open(&by, person.account).await?;
        let (secret, session) = new_session(now, device);
        let replaced = visit.replaced.map(TokenHash::from_secret);
        let opened = self
            .store
            .open_session(person.id, &session, replaced.as_ref());
        recorded.done(opened.await).await?;
        count("right");
        Ok(SignInStep::Session(secret))
    }

    /// The accounts of a person: first the one that they see first, then the further ones.
    pub async fn list_accounts(
        &self,
        person: PersonId,
    ) -> Result<Vec<(AccountId, Role)>, StoreError> {
        let Some(found) = self.store.find_person(person).await? else {
            return Ok(Vec::new());
        };
        let person = found.person;
        let further = self.store.list_memberships(person.id, person.id).await?;
        let further = further.iter().map(|further| {
            let member = person.clone().with_membership(further);
            (further.account, member.role)
        });
        let first = person.account.map(|account| (account, person.role));
        Ok(first.into_iter().chain(further).collect())
    }

    /// Switches a session to another account of its person, or back to their first one. Operators may act for any
    /// account, which the audit log records. Returns the session's new secret; `None` if the person does not belong to
    /// the account.
    pub async fn switch_account(
        &self,
        by: &Actor,
        person: PersonId,
        session: &str,
        account: Option<AccountId>,
    ) -> Result<Option<String>, StoreError> {
        let Some(entered) = account else {
            return self.switch(session, None).await;
        };
        let own = self.list_accounts(person).await?;
        if own.iter().any(|(known, _)| *known == entered) {
            return self.switch(session, account).await;
        }
        let found = self.store.find_person(person).await?;
        if found.is_none_or(|found| found.person.role != Role::Operator) {
            return Ok(None);
        }
        let recorded = self
            .audit
            .record(by, account, Action::AccountEnter, entered, "")
            .await?;
        recorded.done(self.switch(session, account).await).await
    }

    async fn switch(
        &self,
        session: &str,
        account: Option<AccountId>,
    ) -> Result<Option<String>, StoreError> {
        let renewed = secret();
        let (old, new) = (
            TokenHash::from_secret(session),
            TokenHash::from_secret(&renewed),
        );
        let switched = self.store.switch_account(&old, &new, account).await?;
        Ok(switched.then_some(renewed))
    }

    /// Signs out. Does nothing if the session has ended already.
    pub async fn end(&self, from: IpAddr, session: &str) -> Result<(), StoreError> {
        let Some(signed_in) = self.look_up(&TokenHash::from_secret(session)).await? else {
            return Ok(());
        };
        let (by, account) = (Actor::signed_in(&signed_in, from), signed_in.account());
        let recorded = self
            .audit
            .record(&by, account, Action::SessionEnd, DASHBOARD, "")
            .await?;
        let ended = self
            .store
            .end_session(&TokenHash::from_secret(session))
            .await;
        recorded.done(ended).await
    }

    /// Counts an attempt against its network, on this node.
    fn begin_on_node(&self, device: &Device) -> Result<IpAddr, SignInError> {
        let network = throttle::network(address(device));
        let begun = self.by_address.begin(network, self.clock.now());
        begun.map_err(|retry_after_s| SignInError::TooMany { retry_after_s })?;
        Ok(network)
    }

    /// Counts an attempt for all nodes.
    async fn begin_attempt(&self, keys: &[AttemptKey]) -> Result<(), SignInError> {
        let begun = self.store.count_attempt(keys, self.clock.now()).await?;
        begun.map_err(|retry_after_s| SignInError::TooMany { retry_after_s })
    }

    /// Gives an attempt back that was not a guess.
    async fn forgive(&self, network: IpAddr, keys: &[AttemptKey]) -> Result<(), StoreError> {
        self.by_address.forgive(&network);
        self.store.uncount_attempt(keys).await
    }

    /// The browser, if this person has signed in with it before.
    async fn known_browser(
        &self,
        browser: Option<&str>,
        person: Option<PersonId>,
    ) -> Result<Option<String>, StoreError> {
        let Some(browser) = browser else {
            return Ok(None);
        };
        let hash = TokenHash::from_secret(browser);
        let people = self
            .store
            .list_people_of_browser(&hash, self.clock.now())
            .await?;
        let is_known = person.is_some_and(|person| people.contains(&person));
        Ok(is_known.then(|| browser.to_owned()))
    }

    /// Remembers the browser that a person has just signed in with. Returns the secret that the browser should store:
    /// the one it sent if that is known, else a new one. `None` for a session by link, which belongs to no person.
    pub async fn remember_browser(
        &self,
        session: &str,
        sent: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        let Some(signed_in) = self.look_up(&TokenHash::from_secret(session)).await? else {
            return Ok(None);
        };
        let Some(person) = signed_in.person() else {
            return Ok(None);
        };
        let now = self.clock.now();
        let stored = match sent {
            Some(sent) if !self.is_unknown(sent, now).await? => sent.to_owned(),
            _ => secret(),
        };
        let expires = now + BROWSER_LIFETIME;
        let hash = TokenHash::from_secret(&stored);
        self.store
            .remember_browser(&hash, person.id, expires)
            .await?;
        Ok(Some(stored))
    }

    async fn is_unknown(&self, browser: &str, now: Timestamp) -> Result<bool, StoreError> {
        let known = self
            .store
            .list_people_of_browser(&TokenHash::from_secret(browser), now)
            .await?;
        Ok(known.is_empty())
    }

    async fn record_open(
        &self,
        by: &Actor,
        account: Option<AccountId>,
    ) -> Result<RecordedChange<'_>, StoreError> {
        self.audit
            .record(by, account, Action::SessionOpen, DASHBOARD, "")
            .await
    }

    async fn record_refused(
        &self,
        by: &Actor,
        account: Option<AccountId>,
        why: &str,
    ) -> Result<(), StoreError> {
        self.audit
            .record_refused(by, account, Action::SessionOpen, DASHBOARD, why)
            .await
    }
}

/// The key that attempts count against. It is stored, so its text must not change.
pub(crate) fn attempt_key(what: &str, value: &str) -> TokenHash {
    TokenHash::from_secret(&format!("try by {what}\n{value}"))
}

fn network_key(network: IpAddr) -> AttemptKey {
    (attempt_key("address", &network.to_string()), BY_ADDRESS)
}

fn refused(device: &Device, error: SignInError) -> SignInError {
    count("wrong");
    let address = address(device);
    tracing::info!(%address, "a sign-in was refused");
    error
}

fn count(outcome: &'static str) {
    metrics::counter!("switchboard_sign_ins_total", "outcome" => outcome).increment(1);
}

fn by(email: &str, device: &Device) -> Actor {
    Actor {
        who: email.to_owned(),
        address: device.address,
    }
}

/// Callers without a known address are counted together.
fn address(device: &Device) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    device.address.unwrap_or(unknown)
}

/// A session that begins now, and its secret.
pub(crate) fn new_session(now: Timestamp, device: &Device) -> (String, NewSession) {
    let secret = secret();
    let session = NewSession {
        hash: TokenHash::from_secret(&secret),
        opened_at: now,
        expires: now + SESSION_LIFETIME,
        device: device.clone(),
    };
    (secret, session)
}

/// Without the prefix of API tokens, so that it cannot be taken for one.
pub(crate) fn secret() -> String {
    TokenSecret::from_seed(&entropy::bytes()).reveal()[domain::access::token::PREFIX.len()..]
        .to_owned()
}
