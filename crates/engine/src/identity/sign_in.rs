//! Signing in to the dashboard: by a one-time link or by a password, with a second factor where there is one, and the
//! sessions that this opens.

mod second_step;
mod sessions;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use domain::access::token::TokenHash;
use domain::access::tries::TryLimit;
use domain::person::{Device, Email, Password, Role};
use domain::ports::{NewSession, Store, StoreError, TryKey};
use domain::{AccountId, Clock, PersonId, Timestamp, TokenSecret};
use jiff::SignedDuration;

use crate::audit::{Action, Audit, By, Noted};
use crate::entropy;
use crate::identity::hasher::{Busy, Hasher};
use crate::identity::throttle;
use crate::identity::tries::Tries;

use sessions::KnownSessions;
pub use sessions::SessionError;

/// How long a link may wait to be used.
const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// How long a session lasts.
pub const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// What is signed in to, as the log of changes names it.
const DASHBOARD: &str = "dashboard";

/// How long a sign-in may wait for its second factor.
pub const HALF_LIFETIME: SignedDuration = SignedDuration::from_mins(5);

/// How long a browser is known that somebody signed in with.
pub const BROWSER_LIFETIME: SignedDuration = SignedDuration::from_hours(180 * 24);

/// Wrong passwords that an address may send.
const BY_ADDRESS: TryLimit = TryLimit::Steady {
    burst: 10,
    forgiven_after_s: 6,
};
/// Wrong passwords that may be sent for one person, from wherever. Browsers that the person has signed in with before are
/// counted apart, each by itself: no stranger keeps its owner out.
pub(crate) const BY_PERSON: TryLimit = TryLimit::Steady {
    burst: 20,
    forgiven_after_s: 30,
};
/// Wrong codes for one person. Whoever types them knows the password.
const BY_CODES: TryLimit = TryLimit::Growing {
    burst: 10,
    pause_s: 60,
};

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Nobody of this address, or not this password; which of the two is nobody's business.
    #[error("the email address or the password is wrong")]
    Wrong,
    /// Not the code of this moment, or one that was used before.
    #[error("the code is wrong or was used before")]
    WrongCode,
    /// The sign-in waited too long for its second factor, or saw too many wrong codes.
    #[error("the sign-in has to begin anew")]
    Over,
    /// Too many tries.
    #[error("too many wrong passwords")]
    TooMany {
        /// When to try again.
        retry_after_s: u32,
    },
    /// Too many passwords wait to be looked at.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a right password opens. The text is a secret for the browser to keep.
#[derive(Clone, PartialEq, Eq)]
pub enum Entered {
    /// A session.
    Session(String),
    /// A sign-in that lacks its second factor.
    HalfOpen(String),
}

/// What a browser brings along that somebody signs in with.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    /// From where.
    pub device: &'a Device,
    /// The secret of a browser that somebody signed in with before.
    pub browser: Option<&'a str>,
    /// A session whose place the new one takes.
    pub replaced: Option<&'a str>,
}

/// Links, passwords and the sessions that they open. Secrets are stored hashed.
pub struct SignIn {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
    /// Asked before the database, which counts for all nodes.
    by_address: Tries<IpAddr>,
    known_sessions: KnownSessions,
}

impl SignIn {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, hasher: Arc<Hasher>) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
            hasher,
            by_address: Tries::new(BY_ADDRESS),
            known_sessions: KnownSessions::default(),
        }
    }

    /// Makes a link's secret, good for one use within a day.
    pub async fn create_link(&self, by: &By, account: AccountId) -> Result<String, StoreError> {
        let secret = secret();
        let expires = self.clock.now() + LINK_LIFETIME;
        let (subject, detail) = ("one-time sign-in link", format!("until {expires}"));
        let noted = self
            .audit
            .note(by, Some(account), Action::LinkCreate, subject, detail)
            .await?;
        let hash = TokenHash::of(&secret);
        let created = self.store.create_sign_in_link(&hash, account, expires);
        noted.done(created.await).await?;
        Ok(secret)
    }

    /// Uses a link up. The answer is the new session's secret, or `None` for a link that is unknown, used or expired.
    pub async fn redeem(&self, device: &Device, link: &str) -> Result<Option<String>, StoreError> {
        let (secret, session) = new_session(self.clock.now(), device);
        let link = TokenHash::of(link);
        if !self.store.redeem_sign_in_link(&link, &session).await? {
            return Ok(None);
        }
        // Afterwards, because anybody may try a link. Where it cannot be noted nobody is told the session's secret.
        let by = By::link(address(device));
        let _done = self
            .audit
            .note(&by, None, Action::SessionOpen, DASHBOARD, "")
            .await?;
        Ok(Some(secret))
    }

    /// Signs somebody in. An unknown address, or a text that is none, takes as long as a wrong password, counts as one and
    /// is noted as one.
    pub async fn with_password(
        &self,
        email: &str,
        password: Password,
        visit: &Visit<'_>,
    ) -> Result<Entered, SignInError> {
        let device = visit.device;
        let network = self.begin_at(device)?;
        let email = email.parse::<Email>().ok();
        let shown = email.as_ref().map_or("", Email::as_str);
        let known = match &email {
            Some(email) => self.store.find_credentials(email).await?,
            None => None,
        };
        let person = known.as_ref().map(|known| known.person.id);
        let counted = match self.known_browser(visit.browser, person).await? {
            Some(browser) => counted_by("browser", &browser),
            None => counted_by("email", shown),
        };
        let keys = [by_network(network), (counted, BY_PERSON)];
        self.begin_try(&keys).await?;
        let kept = known.as_ref().map(|known| known.password.clone());
        let right = self.hasher.verify(password, kept).await?;
        let by = by(shown, device);
        let account = known.as_ref().and_then(|known| known.person.account);
        let Some(known) = known.filter(|_| right) else {
            let why = "the address or the password was wrong";
            self.note_refused(&by, account, why).await?;
            return Err(refused(device, SignInError::Wrong));
        };
        let person = known.person;
        self.forgive(network, &keys).await?;
        let now = self.clock.now();
        if known.has_second_factor {
            let half = secret();
            let (hash, expires) = (TokenHash::of(&half), now + HALF_LIFETIME);
            self.store.open_half(person.id, &hash, expires, now).await?;
            return Ok(Entered::HalfOpen(half));
        }
        let noted = self.note_open(&by, person.account).await?;
        let (secret, session) = new_session(now, device);
        let replaced = visit.replaced.map(TokenHash::of);
        let opened = self
            .store
            .open_session(person.id, &session, replaced.as_ref());
        noted.done(opened.await).await?;
        count("right");
        Ok(Entered::Session(secret))
    }

    /// The accounts of a person: the one that they see first, and the further ones.
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
            let there = person.clone().with_membership(further);
            (further.account, there.role)
        });
        let first = person.account.map(|account| (account, person.role));
        Ok(first.into_iter().chain(further).collect())
    }

    /// Switches a session to another account of its person. The answer is the session's new secret; `None` when the person
    /// does not belong to the account.
    pub async fn switch_account(
        &self,
        session: &str,
        account: AccountId,
    ) -> Result<Option<String>, StoreError> {
        let renewed = secret();
        let (old, new) = (TokenHash::of(session), TokenHash::of(&renewed));
        let switched = self.store.switch_account(&old, &new, account).await?;
        Ok(switched.then_some(renewed))
    }

    /// Signs out. A session that is over already is none that ends.
    pub async fn end(&self, from: IpAddr, session: &str) -> Result<(), StoreError> {
        let Some(signed_in) = self.look_up(&TokenHash::of(session)).await? else {
            return Ok(());
        };
        let (by, account) = (By::signed_in(&signed_in, from), signed_in.account());
        let noted = self
            .audit
            .note(&by, account, Action::SessionEnd, DASHBOARD, "")
            .await?;
        let ended = self.store.end_session(&TokenHash::of(session)).await;
        noted.done(ended).await
    }

    /// Counts a try against the network that it comes from, on this node.
    fn begin_at(&self, device: &Device) -> Result<IpAddr, SignInError> {
        let network = throttle::network(address(device));
        let begun = self.by_address.begin(network, self.clock.now());
        begun.map_err(|retry_after_s| SignInError::TooMany { retry_after_s })?;
        Ok(network)
    }

    /// Counts a try for all nodes.
    async fn begin_try(&self, keys: &[TryKey]) -> Result<(), SignInError> {
        let begun = self.store.begin_try(keys, self.clock.now()).await?;
        begun.map_err(|retry_after_s| SignInError::TooMany { retry_after_s })
    }

    /// Takes a try back that was no guess.
    async fn forgive(&self, network: IpAddr, keys: &[TryKey]) -> Result<(), StoreError> {
        self.by_address.forgive(&network);
        self.store.forgive_try(keys).await
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
        let hash = TokenHash::of(browser);
        let people = self.store.list_known(&hash, self.clock.now()).await?;
        let is_known = person.is_some_and(|person| people.contains(&person));
        Ok(is_known.then(|| browser.to_owned()))
    }

    /// Remembers the browser that somebody has just signed in with. The answer is the secret that the browser is to keep:
    /// the one that it brought, where that is known, or a new one. `None` for the session of a link, which is nobody's.
    pub async fn remember_browser(
        &self,
        session: &str,
        brought: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        let Some(signed_in) = self.look_up(&TokenHash::of(session)).await? else {
            return Ok(None);
        };
        let Some(person) = signed_in.person() else {
            return Ok(None);
        };
        let now = self.clock.now();
        let kept = match brought {
            Some(brought) if !self.is_new(brought, now).await? => brought.to_owned(),
            _ => secret(),
        };
        let expires = now + BROWSER_LIFETIME;
        let hash = TokenHash::of(&kept);
        self.store
            .remember_browser(&hash, person.id, expires)
            .await?;
        Ok(Some(kept))
    }

    async fn is_new(&self, browser: &str, now: Timestamp) -> Result<bool, StoreError> {
        let known = self.store.list_known(&TokenHash::of(browser), now).await?;
        Ok(known.is_empty())
    }

    async fn note_open(
        &self,
        by: &By,
        account: Option<AccountId>,
    ) -> Result<Noted<'_>, StoreError> {
        self.audit
            .note(by, account, Action::SessionOpen, DASHBOARD, "")
            .await
    }

    async fn note_refused(
        &self,
        by: &By,
        account: Option<AccountId>,
        why: &str,
    ) -> Result<(), StoreError> {
        self.audit
            .note_refused(by, account, Action::SessionOpen, DASHBOARD, why)
            .await
    }
}

/// The fingerprint of what a try counts against.
pub(crate) fn counted_by(what: &str, value: &str) -> TokenHash {
    TokenHash::of(&format!("try by {what}\n{value}"))
}

fn by_network(network: IpAddr) -> TryKey {
    (counted_by("address", &network.to_string()), BY_ADDRESS)
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

fn by(email: &str, device: &Device) -> By {
    By {
        who: email.to_owned(),
        address: device.address,
    }
}

/// Those whose address is unknown are counted together.
fn address(device: &Device) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    device.address.unwrap_or(unknown)
}

/// A session that begins now, and its secret.
pub(crate) fn new_session(now: Timestamp, device: &Device) -> (String, NewSession) {
    let secret = secret();
    let session = NewSession {
        hash: TokenHash::of(&secret),
        opened_at: now,
        expires: now + SESSION_LIFETIME,
        device: device.clone(),
    };
    (secret, session)
}

/// The letters of a token, without its prefix: this is no API token and must not pass for one.
pub(crate) fn secret() -> String {
    TokenSecret::from_seed(&entropy::bytes()).reveal()[domain::access::token::PREFIX.len()..]
        .to_owned()
}
