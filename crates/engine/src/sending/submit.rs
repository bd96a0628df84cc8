//! Accepting messages: from a caller's order to a committed row.

mod approvals;
mod health;
mod intake;
mod lookup;
mod notice;
mod order;
mod viber;
mod writing;

use std::convert::Infallible;
use std::sync::Arc;

use domain::billing::NotPaid;
use domain::message::text::Shape;
use domain::message::{IdempotencyClaim, Recipient, Submission, SubmitReceipt};
use domain::ports::{ImageGuard, Store, StoreError, UrlGuard};
use domain::{
    Access, AccountId, Channel, Clock, Country, Money, Msisdn, Network, Originator, Timestamp,
};
use jiff::SignedDuration;

use crate::batcher::{BatchError, Limits};
use crate::catalogue::{Catalogues, Live};
use crate::sending::dispatch::Dispatch;
use crate::sending::routing::Routing;
use crate::{Guards, Settings};

pub use approvals::Approvals;
pub(crate) use intake::Intake;
pub use lookup::{LookupCost, LookupOrder};
pub(crate) use notice::Notice;
pub use order::{Invalid, SmsOrder, To};
pub use viber::{ActionOrder, ViberOrder};

/// How long an idempotency key and its answer are kept.
const KEY_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// The longest key taken, in bytes.
pub const MAX_KEY_BYTES: usize = 255;
/// Expired idempotency keys are dropped in steps of this many.
const PRUNE_STEP: u32 = 1000;
/// How often expired idempotency keys are looked for.
const PRUNE_EVERY: std::time::Duration = std::time::Duration::from_mins(1);

/// Why a message was not accepted. Nothing of it is stored, but for [`SubmitError::Store`], where a database that went
/// away may have stored it all the same: an idempotency key settles that.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The order breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The account is suspended. Tokens are refused before; people in the dashboard are not.
    #[error("the account is suspended")]
    Suspended,
    /// The idempotency key was used before with another body.
    #[error("the Idempotency-Key was used before with another body")]
    KeyConflict,
    /// The account may not send to this country.
    #[error("the account may not send to the country of {to}")]
    Country {
        /// Which recipient.
        to: Msisdn,
        /// Its country, where it has one.
        country: Option<Country>,
    },
    /// The account may send only under approved senders, and this is none.
    #[error("the account has no approved sender '{0}'")]
    Sender(Originator),
    /// The account cannot or may not pay for it.
    #[error("the account cannot or may not pay for it")]
    NotPaid(NotPaid),
    /// Too much waits already.
    #[error("too many messages wait to be stored")]
    Busy,
    /// The service is going down.
    #[error("the service is shutting down")]
    Stopping,
    /// The store could not.
    #[error("the message could not be stored")]
    Store(#[source] Arc<StoreError>),
}

impl From<StoreError> for SubmitError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl From<BatchError<Infallible>> for SubmitError {
    fn from(error: BatchError<Infallible>) -> Self {
        match error {
            BatchError::Full => Self::Busy,
            BatchError::Stopped => Self::Stopping,
            BatchError::Write(never) => match *never {},
        }
    }
}

/// A caller's idempotency key with the body that it came with, hashed.
#[derive(Debug, Clone, Copy)]
pub struct Repeatable {
    key: [u8; 32],
    body: [u8; 32],
}

impl Repeatable {
    /// Takes a key of 1 to 255 visible ASCII characters.
    pub fn new(key: &[u8], body: &[u8]) -> Option<Self> {
        let fits = (1..=MAX_KEY_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
        fits.then(|| Self {
            key: domain::sha256(&[key]),
            body: domain::sha256(&[body]),
        })
    }
}

/// Accepts messages.
pub struct Submit {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    intake: Intake,
    guard: Arc<dyn UrlGuard>,
    images: Arc<dyn ImageGuard>,
    catalogues: Arc<Catalogues>,
    routing: Arc<Routing>,
    approvals: Approvals,
    pruning: tokio::task::AbortHandle,
}

impl Submit {
    /// Starts accepting. What is accepted goes straight to `dispatch`, where this process has one. Must be called inside
    /// a tokio runtime.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        guards: Guards,
        routing: Arc<Routing>,
        approvals: Approvals,
        dispatch: Option<Arc<Dispatch>>,
        settings: &Settings,
    ) -> Self {
        let limits = Limits {
            queue: settings.accept_queue,
            batch: settings.accept_batch,
        };
        let (kept, told) = (store.clone(), clock.clone());
        let pruning = supervise::spawn("idempotency-keys", move || {
            prune(kept.clone(), told.clone())
        });
        Self {
            intake: Intake::start(store.clone(), clock.clone(), dispatch, limits),
            guard: guards.urls,
            images: guards.images,
            catalogues: routing.catalogues().clone(),
            routing,
            approvals,
            store,
            clock,
            pruning: pruning.abort_handle(),
        }
    }

    /// The answer that was given when this very request was made before.
    pub async fn find_answer(
        &self,
        account: AccountId,
        request: &Repeatable,
    ) -> Result<Option<SubmitReceipt>, SubmitError> {
        match self
            .store
            .find_answer(account, &request.key, self.clock.now())
            .await?
        {
            None => Ok(None),
            Some(kept) if kept.body == request.body => Ok(Some(kept.receipt)),
            Some(_) => Err(SubmitError::KeyConflict),
        }
    }

    /// Checks an order and stores it. When this returns `Ok`, the messages survive a power cut.
    pub async fn send(
        &self,
        access: &Access,
        order: SmsOrder<'_>,
        repeatable: Option<Repeatable>,
    ) -> Result<SubmitReceipt, SubmitError> {
        check_active(access)?;
        let from = self.approvals.originator(access, &order.from).await?;
        let now = self.clock.now();
        let submission = {
            let live = self.catalogues.live();
            let submission = order.check(access.account, from, now, &live)?;
            check_countries(access, &submission, &live)?;
            submission
        };
        self.accept(submission, ["to", "dlrUrl"], repeatable).await
    }

    /// Checks an order for a Viber message and stores it. When this returns `Ok`, the messages survive a power cut.
    pub async fn send_viber(
        &self,
        access: &Access,
        order: ViberOrder<'_>,
        repeatable: Option<Repeatable>,
    ) -> Result<SubmitReceipt, SubmitError> {
        check_active(access)?;
        let from = self.approvals.approved(access, &order.from).await?;
        let now = self.clock.now();
        let submission = {
            let live = self.catalogues.live();
            let submission = order.check(access.account, from, now, &live)?;
            check_countries(access, &submission, &live)?;
            submission
        };
        let image = submission
            .interactive
            .as_ref()
            .and_then(|interactive| interactive.image.as_ref());
        if let Some(image) = image {
            let checked = self.images.check(access.account, image).await;
            checked.map_err(|unusable| Invalid::new("im.image.url", unusable))?;
        }
        self.accept(submission, ["to", "dlrUrl"], repeatable).await
    }

    /// Checks an order to look a subscriber up and stores it. When this returns `Ok`, it survives a power cut.
    pub async fn look_up(
        &self,
        access: &Access,
        order: LookupOrder<'_>,
        repeatable: Option<Repeatable>,
    ) -> Result<SubmitReceipt, SubmitError> {
        check_active(access)?;
        let now = self.clock.now();
        let submission = order.check(access.account, now, &self.catalogues.live())?;
        self.accept(submission, ["msisdn", "callBackUrl"], repeatable)
            .await
    }

    /// Stores what was checked, once its callbacks may go where they are to go.
    async fn accept(
        &self,
        mut submission: Submission,
        [recipient_field, url_field]: [&'static str; 2],
        repeatable: Option<Repeatable>,
    ) -> Result<SubmitReceipt, SubmitError> {
        submission.idempotency = repeatable.map(|r| claim(r, submission.accepted_at));
        if let Some(url) = &submission.dlr_url {
            let checked = self.guard.check(submission.account, url).await;
            checked.map_err(|forbidden| Invalid::new(url_field, forbidden))?;
        }
        self.check_routes(&submission, recipient_field)?;
        self.intake.store(submission).await
    }

    /// Whether there is a carrier for every recipient. What only pretends needs none.
    fn check_routes(&self, submission: &Submission, field: &'static str) -> Result<(), Invalid> {
        let has_route = |recipient: &&Recipient| {
            self.routing
                .has_route(submission.channel, submission.account, &recipient.to)
        };
        let mut recipients = submission.recipients.iter();
        match recipients.find(|recipient| !has_route(recipient)) {
            Some(recipient) if submission.test_mode.is_none() => {
                let (to, channel) = (recipient.to, submission.channel.name());
                let reason = format!(
                    "{to} cannot be reached: no carrier of this service goes there by {channel}"
                );
                Err(Invalid::new(field, reason))
            }
            _ => Ok(()),
        }
    }

    /// Sends what the service itself has to say to somebody: urgent, for nothing, and worth nothing after a while. When
    /// this returns `Ok`, it survives a power cut.
    pub(crate) async fn send_notice(
        &self,
        account: AccountId,
        notice: Notice,
    ) -> Result<SubmitReceipt, SubmitError> {
        let now = self.clock.now();
        let submission = notice.submission(account, now, &self.catalogues.live())?;
        self.check_routes(&submission, "name")?;
        self.intake.store(submission).await
    }

    /// Whether the account may send there at all.
    pub(crate) fn check_destination(
        &self,
        access: &Access,
        to: &Msisdn,
    ) -> Result<(), SubmitError> {
        check_country(access, *to, &self.catalogues.live())
    }

    /// What an order would cost, recipient by recipient. Nothing is stored.
    pub async fn cost(
        &self,
        access: &Access,
        order: SmsOrder<'_>,
    ) -> Result<Vec<Cost>, SubmitError> {
        let account = access.account;
        let from = self.approvals.originator(access, &order.from).await?;
        let live = self.catalogues.live();
        let submission = order.check(account, from, self.clock.now(), &live)?;
        let is_test = submission.test_mode.is_some();
        let cost = |recipient: &Recipient| {
            let place = live.reference.locate(&recipient.to);
            let price = live
                .prices(Channel::Sms)
                .price(account, &place)
                .filter(|_| !is_test);
            Cost {
                to: recipient.to,
                shape: submission.shape,
                country: place.country,
                network: place.network,
                per_part: price.unwrap_or_default(),
                total: recipient.price,
            }
        };
        Ok(submission.recipients.iter().map(cost).collect())
    }

    /// Whether messages can be stored, as far as the last writes told.
    pub fn is_accepting(&self) -> bool {
        self.intake.is_accepting()
    }

    /// Returns when the store could not make a write durable: the service must end, a restart reads the truth back.
    pub(crate) async fn broken(&self) {
        self.intake.broken().await;
    }

    /// Takes nothing more and returns once everything taken is stored.
    pub async fn stop(&self) {
        self.pruning.abort();
        self.intake.stop().await;
    }
}

/// What a message to one recipient costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The recipient.
    pub to: Msisdn,
    /// How the text is coded and split.
    pub shape: Shape,
    /// The recipient's country.
    pub country: Option<Country>,
    /// The recipient's network, as far as its prefix tells.
    pub network: Option<Network>,
    /// The price of one part.
    pub per_part: Money,
    /// The price of all parts.
    pub total: Money,
}

/// Whether the account may do anything at all.
pub(crate) fn check_active(access: &Access) -> Result<(), SubmitError> {
    if access.suspended {
        return Err(SubmitError::Suspended);
    }
    Ok(())
}

/// What only pretends goes nowhere, so it may go everywhere.
fn check_countries(
    access: &Access,
    submission: &Submission,
    live: &Live,
) -> Result<(), SubmitError> {
    if access.countries.as_slice().is_empty() || submission.test_mode.is_some() {
        return Ok(());
    }
    let mut recipients = submission.recipients.iter();
    recipients.try_for_each(|recipient| check_country(access, recipient.to, live))
}

fn check_country(access: &Access, to: Msisdn, live: &Live) -> Result<(), SubmitError> {
    let country = live.reference.locate(&to).country;
    if access.countries.allows(country) {
        Ok(())
    } else {
        Err(SubmitError::Country { to, country })
    }
}

fn claim(request: Repeatable, now: Timestamp) -> IdempotencyClaim {
    IdempotencyClaim {
        key: request.key,
        body: request.body,
        expires_at: now + KEY_LIFETIME,
    }
}

/// Drops expired idempotency keys, a step at a time, so that no write waits long behind it.
async fn prune(store: Arc<dyn Store>, clock: Arc<dyn Clock>) {
    let mut tick = tokio::time::interval(PRUNE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        loop {
            match store.prune_answers(clock.now(), PRUNE_STEP).await {
                Ok(dropped) if dropped >= u64::from(PRUNE_STEP) => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "expired idempotency keys stay for now");
                    break;
                }
            }
        }
    }
}
