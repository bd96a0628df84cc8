//! Signing in to the dashboard: by a one-time link or by a password, with a second factor where there is one, and the
//! sessions that this opens.

mod second_step;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use domain::person::{Device, Email, Password, SignedIn};
use domain::ports::{NewSession, Store, StoreError};
use domain::token::TokenHash;
use domain::{AccountId, Clock, Timestamp, TokenSecret};
use jiff::SignedDuration;

use crate::audit::{Action, Audit, By, Noted};
use crate::entropy;
use crate::people::{Busy, Hasher, Tries};
use crate::throttle;

/// How long a link may wait to be used.
const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// How long a session lasts.
pub const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// What is signed in to, as the log of changes names it.
const DASHBOARD: &str = "dashboard";

/// How long a sign-in may wait for its second factor.
pub const HALF_LIFETIME: SignedDuration = SignedDuration::from_mins(5);
/// How exactly it is known when a session was last used.
const SEEN_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// Wrong passwords that an address may send in quick succession, and the seconds after which one is forgiven.
const BY_ADDRESS: (u32, i64) = (10, 6);
/// Wrong passwords that may be sent for one person, from wherever, and the seconds after which one is forgiven.
pub(crate) const BY_EMAIL: (u32, i64) = (20, 30);

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

    /// Signs somebody in. A session takes the place of `replaced`. An unknown address, or a text that is none, takes as
    /// long as a wrong password and counts as one.
    pub async fn with_password(
        &self,
        email: &str,
        password: Password,
        device: &Device,
        replaced: Option<&str>,
    ) -> Result<Entered, SignInError> {
        let email = email.parse::<Email>().ok();
        let shown = email.as_ref().map_or("", Email::as_str);
        let tried = self.begin_try(shown, device)?;
        let known = match &email {
            Some(email) => self.store.find_credentials(email).await?,
            None => None,
        };
        let kept = known.as_ref().map(|known| known.password.clone());
        let right = self.hasher.verify(password, kept).await?;
        let by = by(shown, device);
        let Some(known) = known else {
            return Err(refused(device, SignInError::Wrong));
        };
        let person = known.person;
        if !right {
            let why = "the password was wrong";
            self.note_refused(&by, person.account, why).await?;
            return Err(refused(device, SignInError::Wrong));
        }
        self.forgive(&tried);
        let now = self.clock.now();
        if known.has_second_factor {
            let half = secret();
            let (hash, expires) = (TokenHash::of(&half), now + HALF_LIFETIME);
            self.store.open_half(person.id, &hash, expires, now).await?;
            return Ok(Entered::HalfOpen(half));
        }
        let noted = self.note_open(&by, person.account).await?;
        let (secret, session) = new_session(now, device);
        let replaced = replaced.map(TokenHash::of);
        let opened = self
            .store
            .open_session(person.id, &session, replaced.as_ref());
        noted.done(opened.await).await?;
        count("right");
        Ok(Entered::Session(secret))
    }

    /// Whose session it is. Now and then it is remembered that it was used.
    pub async fn find(&self, session: &str) -> Result<Option<SignedIn>, StoreError> {
        let (session, now) = (TokenHash::of(session), self.clock.now());
        let Some(found) = self.store.find_session(&session, now).await? else {
            return Ok(None);
        };
        if now.duration_since(found.seen_at) >= SEEN_EVERY
            && let Err(error) = self.store.touch_session(&session, now).await
        {
            // Whoever asks is served all the same: the list of sessions only shows an older time.
            tracing::warn!(%error, "it could not be remembered that a session was used");
        }
        Ok(Some(found.signed_in))
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

    /// Counts a try against the address that it comes from and the person that it is for.
    fn begin_try(&self, email: &str, device: &Device) -> Result<Tried, SignInError> {
        let now = self.clock.now();
        let tried = Tried {
            network: throttle::network(address(device)),
            named: TokenHash::of(email),
        };
        let wait = |retry_after_s| SignInError::TooMany { retry_after_s };
        self.by_address.begin(tried.network, now).map_err(wait)?;
        self.by_email.begin(tried.named, now).map_err(wait)?;
        Ok(tried)
    }

    /// Takes a try back that was no guess.
    fn forgive(&self, tried: &Tried) {
        self.by_address.forgive(&tried.network);
        self.by_email.forgive(&tried.named);
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

/// What a try was counted against.
struct Tried {
    network: IpAddr,
    named: TokenHash,
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
    TokenSecret::from_seed(&entropy::bytes()).reveal()[domain::token::PREFIX.len()..].to_owned()
}
