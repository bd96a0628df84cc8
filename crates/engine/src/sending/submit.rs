//! Accepting messages: from a caller's request to a committed row.

mod approvals;
mod cost;
mod grant_caps;
mod health;
mod intake;
mod lookup;
mod notice;
mod replace;
mod sms;
mod stages;
mod viber;
mod writer;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use domain::billing::NotPaid;
use domain::message::{AcceptedMessages, IdempotencyClaim};
use domain::ports::{ImageGuard, StoreError, UrlGuard, WorkStore};
use domain::{
    Access, AccountId, CallbackUrl, Channel, Clock, Code, Country, MessageId, Msisdn, Originator,
    Timestamp, TraceContext,
};
use jiff::SignedDuration;
use numbering::reference::Location;

use crate::batcher::{BatchError, Limits};
use crate::catalogue::Catalogues;
use crate::invalid::{Field, Invalid};
use crate::monitoring::ended::EndedCounters;
use crate::refusals::Content;
use crate::sending::dispatch::Dispatch;
use crate::sending::routing::Routing;
use crate::{Guards, Settings};

pub use approvals::Approvals;
pub use cost::{Cost, Preview};
pub use grant_caps::GrantCaps;
pub(crate) use intake::Intake;
pub use lookup::{LookupCost, LookupInput};
pub(crate) use notice::Notice;
pub use replace::ReplacementInput;
pub(crate) use sms::check_one;
pub use sms::{SmsInput, To, is_recipient};
pub(crate) use stages::{Checked, Destination, RoutedRequest};
pub use viber::{ActionInput, ViberInput};

/// How long an idempotency key is stored with its answer.
const KEY_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
pub const MAX_KEY_BYTES: usize = 255;
/// How many expired idempotency keys are deleted at a time.
const PRUNE_STEP: u32 = 1000;
const PRUNE_EVERY: std::time::Duration = std::time::Duration::from_mins(1);

/// Why a message was not accepted. Nothing is stored, except possibly with [`SubmitError::Store`]: if the database went
/// away, it may have stored the message. An idempotency key makes a repetition safe.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// A field of the request is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The account is suspended. Tokens are refused earlier, but people in the dashboard are not.
    #[error("the account is suspended")]
    Suspended,
    /// The idempotency key was used before with another body.
    #[error("the Idempotency-Key was used before with another body")]
    KeyConflict,
    /// The account may not send to this country.
    #[error("the account may not send to the country of {to}")]
    Country {
        to: Msisdn,
        country: Option<Country>,
    },
    /// The account may use only approved sender IDs, and this is not one; or the caller may not use it.
    #[error("the account has no approved sender '{0}'")]
    Sender(Originator),
    /// The account cannot or may not pay for the message.
    #[error("the account cannot or may not pay for it")]
    NotPaid(NotPaid),
    /// Too many messages wait to be stored.
    #[error("too many messages wait to be stored")]
    Busy,
    #[error("the service is shutting down")]
    Stopping,
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

/// Hashes of a caller's idempotency key and of the request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotentRequest {
    key: [u8; 32],
    body: [u8; 32],
}

impl IdempotentRequest {
    /// The key must have 1 to 255 visible ASCII characters.
    pub fn new(key: &[u8], body: &[u8]) -> Option<Self> {
        let fits = (1..=MAX_KEY_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
        fits.then(|| Self {
            key: domain::sha256(&[key]),
            body: domain::sha256(&[body]),
        })
    }

    pub(crate) const fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// Of the reply to a message from a handset. No caller can have this key: it is not visible ASCII.
    pub(crate) fn of_reply(to: MessageId) -> Self {
        let key = domain::sha256(&[b"\0reply to ", to.to_string().as_bytes()]);
        Self { key, body: key }
    }
}

/// What callers may use and spend.
pub struct CallerLimits {
    pub approvals: Approvals,
    pub grant_caps: GrantCaps,
}

/// Accepts messages.
pub struct Submit {
    store: Arc<dyn WorkStore>,
    clock: Arc<dyn Clock>,
    intake: Intake,
    guard: Arc<dyn UrlGuard>,
    images: Arc<dyn ImageGuard>,
    catalogues: Arc<Catalogues>,
    routing: Arc<Routing>,
    approvals: Approvals,
    grant_caps: GrantCaps,
    pruning: tokio::task::AbortHandle,
}

impl Submit {
    /// Starts accepting messages and hands them to `dispatch` if this process is a worker. Must be called inside a
    /// tokio runtime.
    pub fn start(
        store: Arc<dyn WorkStore>,
        clock: Arc<dyn Clock>,
        guards: Guards,
        routing: Arc<Routing>,
        callers: CallerLimits,
        dispatch: Option<Arc<Dispatch>>,
        settings: &Settings,
    ) -> Self {
        let limits = Limits {
            queue: settings.accept_queue,
            batch: settings.accept_batch,
            writes: store.concurrent_accepts(),
            interval: Duration::ZERO,
        };
        let ported = routing.ported().clone();
        let ended = EndedCounters::new(routing.catalogues().clone(), ported);
        let (key_store, key_clock) = (store.clone(), clock.clone());
        let pruning = supervise::spawn("idempotency-keys", move || {
            prune(key_store.clone(), key_clock.clone())
        });
        Self {
            intake: Intake::start(store.clone(), clock.clone(), dispatch, ended, limits),
            guard: guards.urls,
            images: guards.images,
            catalogues: routing.catalogues().clone(),
            routing,
            approvals: callers.approvals,
            grant_caps: callers.grant_caps,
            store,
            clock,
            pruning: pruning.abort_handle(),
        }
    }

    /// The answer to an earlier, identical request.
    pub async fn find_answer(
        &self,
        account: AccountId,
        request: &IdempotentRequest,
    ) -> Result<Option<AcceptedMessages>, SubmitError> {
        match self
            .store
            .find_answer(account, &request.key, self.clock.now())
            .await?
        {
            None => Ok(None),
            Some(stored) if stored.body == request.body => Ok(Some(stored.receipt)),
            Some(_) => Err(SubmitError::KeyConflict),
        }
    }

    /// Checks a request and stores its messages. Once this returns `Ok`, they survive a power cut.
    pub async fn send(
        &self,
        access: &Access,
        order: SmsInput<'_>,
        repeatable: Option<IdempotentRequest>,
        trace: Option<TraceContext>,
    ) -> Result<AcceptedMessages, SubmitError> {
        self.send_sms(access, order, None, repeatable, trace).await
    }

    /// Like [`Self::send`], for a message that came by SMPP. `receipts` names the sessions that get its receipt.
    pub async fn send_by_smpp(
        &self,
        access: &Access,
        order: SmsInput<'_>,
        receipts: Option<CallbackUrl>,
        repeatable: Option<IdempotentRequest>,
    ) -> Result<AcceptedMessages, SubmitError> {
        self.send_sms(access, order, receipts, repeatable, None)
            .await
    }

    async fn send_sms(
        &self,
        access: &Access,
        order: SmsInput<'_>,
        receipts: Option<CallbackUrl>,
        repeatable: Option<IdempotentRequest>,
        trace: Option<TraceContext>,
    ) -> Result<AcceptedMessages, SubmitError> {
        check_active(access)?;
        let from = self.approvals.originator(access, &order.from).await?;
        let mut checked = order.check(access.account, from, self.clock.now())?;
        checked.trace = trace;
        checked.dlr_url = receipts.or(checked.dlr_url);
        let routed = self.route(checked)?;
        routed.check_countries(access)?;
        let fields = [Field::Recipients, Field::DlrUrl];
        self.accept(access, routed, fields, repeatable).await
    }

    /// Checks a request for Viber messages and stores them. Once this returns `Ok`, they survive a power cut.
    pub async fn send_viber(
        &self,
        access: &Access,
        order: ViberInput<'_>,
        repeatable: Option<IdempotentRequest>,
        trace: Option<TraceContext>,
    ) -> Result<AcceptedMessages, SubmitError> {
        check_active(access)?;
        let from = self.approvals.approved(access, &order.from).await?;
        let mut checked = order.check(access.account, from, self.clock.now())?;
        checked.trace = trace;
        let routed = self.route(checked)?;
        routed.check_countries(access)?;
        let interactive = routed.checked.interactive.as_ref();
        if let Some(image) = interactive.and_then(|interactive| interactive.image.as_ref()) {
            let checked = self.images.check(access.account, image).await;
            checked.map_err(|unusable| {
                Invalid::new(Field::ImageUrl, unusable).with_code(Code::BAD_IMAGE)
            })?;
        }
        let fields = [Field::Recipients, Field::DlrUrl];
        self.accept(access, routed, fields, repeatable).await
    }

    /// Checks a request for a lookup and stores it. Once this returns `Ok`, it survives a power cut.
    pub async fn look_up(
        &self,
        access: &Access,
        order: LookupInput<'_>,
        repeatable: Option<IdempotentRequest>,
        trace: Option<TraceContext>,
    ) -> Result<AcceptedMessages, SubmitError> {
        check_active(access)?;
        let mut checked = order.check(access.account, self.clock.now())?;
        checked.trace = trace;
        let routed = self.route(checked).map_err(lookup::as_subscriber)?;
        let fields = [Field::Subscriber, Field::CallbackUrl];
        self.accept(access, routed, fields, repeatable).await
    }

    fn route(&self, checked: Checked) -> Result<RoutedRequest, Invalid> {
        let mut routed = checked.route(&self.catalogues.live(), &self.routing)?;
        routed.refuse(self.routing.refusals());
        Ok(routed)
    }

    /// Stores a request after its callback URL has been checked.
    async fn accept(
        &self,
        access: &Access,
        routed: RoutedRequest,
        [recipient_field, url_field]: [Field; 2],
        repeatable: Option<IdempotentRequest>,
    ) -> Result<AcceptedMessages, SubmitError> {
        self.check_callback(&routed.checked, url_field).await?;
        routed.check_routes(recipient_field)?;
        let claim = repeatable.map(|request| claim(request, routed.checked.accepted_at));
        let reserved = self.grant_caps.reserve(access, &routed).await?;
        let stored = self.intake.store(routed, claim).await;
        if let Some(reserved) = reserved {
            self.grant_caps.settle(reserved, stored.as_ref()).await;
        }
        stored.map(|stored| stored.receipt)
    }

    /// Checks that the service may call the callback URL.
    async fn check_callback(&self, checked: &Checked, field: Field) -> Result<(), Invalid> {
        // Sessions are no address that somebody could abuse.
        let Some(url) = checked.dlr_url.as_ref().filter(|url| !url.is_smpp()) else {
            return Ok(());
        };
        let allowed = self.guard.check(checked.account, url).await;
        allowed.map_err(|forbidden| Invalid::new(field, forbidden))
    }

    /// Sends a message that the service writes: with high priority and a short validity. Once this returns `Ok`, it
    /// survives a power cut.
    pub(crate) async fn send_notice(
        &self,
        account: AccountId,
        notice: Notice,
        repeatable: Option<IdempotentRequest>,
    ) -> Result<AcceptedMessages, SubmitError> {
        let number_field = if notice.paid {
            Field::Recipients
        } else {
            Field::SenderName
        };
        let now = self.clock.now();
        let routed = self.route(notice.check(account, now)?)?;
        routed.check_routes(number_field)?;
        let claim = repeatable.map(|request| claim(request, now));
        let stored = self.intake.store(routed, claim).await;
        stored.map(|stored| stored.receipt)
    }

    /// The originator of an account's message, if the account may use it.
    pub(crate) async fn originator(
        &self,
        access: &Access,
        from: &str,
    ) -> Result<Originator, SubmitError> {
        self.approvals.originator(access, from).await
    }

    /// Why an account's SMS would not be sent, if so: the recipient opted out, or it is blocked.
    pub(crate) fn find_refusal(
        &self,
        account: AccountId,
        to: &Msisdn,
        from: &Originator,
        text: &str,
    ) -> Option<Code> {
        let content = Content {
            account,
            channel: Channel::Sms,
            from: Some(from),
            text,
            notice: false,
        };
        let mut found = None;
        let refusals = self.routing.refusals();
        refusals.check(&content, [to].into_iter(), |_, code| found = Some(code));
        found
    }

    /// Whether the account may send to this number's country.
    pub(crate) fn check_destination(
        &self,
        access: &Access,
        to: &Msisdn,
    ) -> Result<(), SubmitError> {
        let location = self.catalogues.live().reference.locate(to);
        check_country(access, *to, location.country)
    }

    /// Where a number is, as far as the account's prices go by it.
    pub(crate) fn locate(&self, account: AccountId, to: &Msisdn) -> Location {
        let (table, live) = (self.routing.table(), self.catalogues.live());
        let locations = self.routing.locate(&table, &live, Some(account), to);
        *locations.for_account()
    }

    /// Whether messages can be stored, judging by the last writes.
    pub fn is_accepting(&self) -> bool {
        self.intake.is_accepting()
    }

    /// Returns when the store could not make a write durable. The service must then end: a restart reads the true
    /// state.
    pub(crate) async fn broken(&self) {
        self.intake.broken().await;
    }

    /// Refuses further messages and returns once all accepted ones are stored.
    pub async fn stop(&self) {
        self.pruning.abort();
        self.intake.stop().await;
    }
}

pub(crate) fn check_active(access: &Access) -> Result<(), SubmitError> {
    if access.suspended {
        return Err(SubmitError::Suspended);
    }
    Ok(())
}

fn check_country(access: &Access, to: Msisdn, country: Option<Country>) -> Result<(), SubmitError> {
    if access.allows_country(country) {
        Ok(())
    } else {
        Err(SubmitError::Country { to, country })
    }
}

fn claim(request: IdempotentRequest, now: Timestamp) -> IdempotencyClaim {
    IdempotencyClaim {
        key: request.key,
        body: request.body,
        expires_at: now + KEY_LIFETIME,
    }
}

/// Deletes expired idempotency keys in steps, so that no other write waits long.
async fn prune(store: Arc<dyn WorkStore>, clock: Arc<dyn Clock>) {
    let mut tick = tokio::time::interval(PRUNE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        loop {
            match store.prune_answers(clock.now(), PRUNE_STEP).await {
                Ok(dropped) if dropped >= u64::from(PRUNE_STEP) => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "expired idempotency keys cannot be deleted; trying again later");
                    break;
                }
            }
        }
    }
}
