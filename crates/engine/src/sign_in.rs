//! Signing in to the dashboard: by a one-time link or by a password, and the sessions that this opens.

use std::net::IpAddr;
use std::sync::Arc;

use domain::person::{Email, Password, SignedIn};
use domain::ports::{NewSession, Store, StoreError};
use domain::token::TokenHash;
use domain::{AccountId, Clock, Timestamp, TokenSecret};
use jiff::SignedDuration;

use crate::audit::{Action, Audit, By};
use crate::entropy;
use crate::people::{Busy, Hasher, Tries};
use crate::throttle;

/// How long a link may wait to be used.
const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// How long a session lasts.
pub const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// What is signed in to, as the log of changes names it.
const DASHBOARD: &str = "dashboard";

/// Wrong passwords that an address may send in quick succession, and the seconds after which one is forgiven.
const BY_ADDRESS: (u32, i64) = (10, 6);
/// Wrong passwords that may be sent for one person, from wherever, and the seconds after which one is forgiven.
const BY_EMAIL: (u32, i64) = (20, 30);

/// Why nobody is signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Nobody of this address, or not this password; which of the two is nobody's business.
    #[error("the email address or the password is wrong")]
    Wrong,
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

/// Links, passwords and the sessions that they open. Secrets are stored hashed.
pub struct SignIn {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
    by_address: Tries<IpAddr>,
    by_email: Tries<TokenHash>,
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
            by_address: Tries::new(BY_ADDRESS.0, BY_ADDRESS.1),
            by_email: Tries::new(BY_EMAIL.0, BY_EMAIL.1),
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
    pub async fn redeem(&self, from: IpAddr, link: &str) -> Result<Option<String>, StoreError> {
        let now = self.clock.now();
        let (secret, session) = new_session(now);
        let opened = self
            .store
            .redeem_sign_in_link(&TokenHash::of(link), &session, now)
            .await?;
        if !opened {
            return Ok(None);
        }
        // Afterwards, because anybody may try a link. Where it cannot be noted nobody is told the session's secret.
        let _done = self
            .audit
            .note(&By::link(from), None, Action::SessionOpen, DASHBOARD, "")
            .await?;
        Ok(Some(secret))
    }

    /// Signs somebody in who calls from `address`. The answer is the secret of a new session, which takes the place of
    /// `replaced`. An unknown address, or a text that is none, takes as long as a wrong password and counts as one.
    pub async fn with_password(
        &self,
        email: &str,
        password: Password,
        address: IpAddr,
        replaced: Option<&str>,
    ) -> Result<String, SignInError> {
        let now = self.clock.now();
        let email = email.parse::<Email>().ok();
        let network = throttle::network(address);
        let named = TokenHash::of(email.as_ref().map_or("", Email::as_str));
        let wait = |retry_after_s| SignInError::TooMany { retry_after_s };
        self.by_address.begin(network, now).map_err(wait)?;
        self.by_email.begin(named, now).map_err(wait)?;
        let known = match &email {
            Some(email) => self.store.find_credentials(email).await?,
            None => None,
        };
        let (person, kept) = known.map(|known| (known.person, known.password)).unzip();
        let right = self.hasher.verify(password, kept).await?;
        let by = By {
            who: email.as_ref().map_or_else(String::new, Email::to_string),
            address: Some(address),
        };
        let account = person.as_ref().and_then(|person| person.account);
        if person.is_some() && !right {
            let (action, why) = (Action::SessionOpen, "the password was wrong");
            self.audit
                .note_refused(&by, account, action, DASHBOARD, why)
                .await?;
        }
        let Some(person) = person.filter(|_| right) else {
            metrics::counter!("switchboard_sign_ins_total", "outcome" => "wrong").increment(1);
            tracing::info!(%address, "a sign-in was refused");
            return Err(SignInError::Wrong);
        };
        self.by_address.forgive(&network);
        self.by_email.forgive(&named);
        let noted = self
            .audit
            .note(&by, account, Action::SessionOpen, DASHBOARD, "")
            .await?;
        let (secret, session) = new_session(now);
        let replaced = replaced.map(TokenHash::of);
        let opened = self
            .store
            .open_session(person.id, &session, replaced.as_ref(), now);
        noted.done(opened.await).await?;
        metrics::counter!("switchboard_sign_ins_total", "outcome" => "right").increment(1);
        Ok(secret)
    }

    /// Whose session it is.
    pub async fn find(&self, session: &str) -> Result<Option<SignedIn>, StoreError> {
        self.store
            .find_session(&TokenHash::of(session), self.clock.now())
            .await
    }

    /// Signs out. A session that is over already is none that ends.
    pub async fn end(&self, from: IpAddr, session: &str) -> Result<(), StoreError> {
        let Some(signed_in) = self.find(session).await? else {
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
}

/// A session that begins now, and its secret.
pub(crate) fn new_session(now: Timestamp) -> (String, NewSession) {
    let secret = secret();
    let session = NewSession {
        hash: TokenHash::of(&secret),
        expires: now + SESSION_LIFETIME,
    };
    (secret, session)
}

/// The letters of a token, without its prefix: this is no API token and must not pass for one.
pub(crate) fn secret() -> String {
    TokenSecret::from_seed(&entropy::bytes()).reveal()[domain::token::PREFIX.len()..].to_owned()
}
