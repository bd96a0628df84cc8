//! Sender IDs of accounts: registering names and numbers, confirming numbers, reviewing names.

mod review;

use std::borrow::Cow;
use std::sync::Arc;

use domain::kill_point::{KillPoint, pass};
use domain::ports::{
    Confirmed, ListRange, NewSender, Registered, SenderFilter, SenderStore, StoreError, UrlGuard,
};
use domain::quoted::Quoted;
use domain::sender::{
    Category, Judgement, MAX_DESCRIPTION_CHARS, PIN_LIFETIME, Pin, PinHash, SenderKind, SenderName,
    SenderRecord, SenderState,
};
use domain::{Access, AccountId, CallbackUrl, Clock, Code, Msisdn, Originator, SenderId};

use crate::entropy;
use crate::invalid::{Field, Invalid};
use crate::sending::submit::{Notice, Submit, SubmitError, check_active};

pub use review::{ReviewError, SenderReview};

/// A sender to register, every field as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderInput<'a> {
    /// The name or number.
    pub name: Cow<'a, str>,
    /// `AlphaNumeric` or `MSISDN`.
    pub kind: Cow<'a, str>,
    /// What the name stands for.
    pub category: Option<Cow<'a, str>>,
    /// What entitles the account to the name; for the reviewer.
    pub description: Option<Cow<'a, str>>,
    /// Where changes of state are reported.
    pub notification_url: Option<Cow<'a, str>>,
}

/// PINs are free of charge, so the number of pending confirmations of an account is limited.
pub const MAX_AWAITING: u32 = 50;

/// Why a sender was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// A field breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The account has a live sender of this name.
    #[error("the account has sender {0} of this name")]
    Exists(SenderId, SenderState),
    /// A PIN was sent to this number less than a minute ago.
    #[error("a PIN for sender {0} was sent less than a minute ago")]
    TooSoon(SenderId),
    /// The number or the account has reached its limit of codes.
    #[error("too many codes were sent")]
    CodeCapReached {
        /// Seconds until the next code may be sent.
        retry_after_s: u32,
    },
    /// The account has too many pending confirmations.
    #[error("{MAX_AWAITING} numbers of the account wait for their PIN")]
    TooMany,
    /// The PIN could not be sent, or the account may not send at all.
    #[error("the PIN could not be sent")]
    Pin(#[source] SubmitError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a PIN did not confirm a number.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    /// It is not five digits.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It is wrong.
    #[error("the PIN is wrong")]
    Wrong {
        /// How many more guesses are allowed.
        tries_left: u32,
    },
    /// Too many wrong PINs were tried.
    #[error("too many wrong PINs came")]
    UsedUp,
    #[error("the PIN has expired")]
    Expired,
    /// The sender ID is not waiting for a PIN.
    #[error("the sender is {}", .0.name())]
    NotWaiting(SenderState),
    /// The account has no such sender.
    #[error("there is no such sender")]
    Unknown,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The sender IDs of an account.
pub struct Senders {
    store: Arc<dyn SenderStore>,
    clock: Arc<dyn Clock>,
    guard: Arc<dyn UrlGuard>,
    submit: Arc<Submit>,
    pin_from: Originator,
}

impl Senders {
    /// PINs are sent from `pin_from`.
    pub fn new(
        store: Arc<dyn SenderStore>,
        clock: Arc<dyn Clock>,
        guard: Arc<dyn UrlGuard>,
        submit: Arc<Submit>,
        pin_from: Originator,
    ) -> Self {
        Self {
            store,
            clock,
            guard,
            submit,
            pin_from,
        }
    }

    /// Registers a name, which is then reviewed, or a number, to which a PIN is sent.
    pub async fn register(
        &self,
        access: &Access,
        order: SenderInput<'_>,
    ) -> Result<SenderId, RegisterError> {
        check_active(access).map_err(RegisterError::Pin)?;
        let mut sender = check(access.account, &order, self.clock.now())?;
        if let Some(url) = &sender.notification_url {
            let checked = self.guard.check(access.account, url).await;
            checked.map_err(|forbidden| Invalid::new(Field::NotificationUrl, forbidden))?;
        }
        let SenderName::Msisdn(number) = sender.name else {
            return self.registered(self.store.register_sender(&sender).await?);
        };
        self.submit
            .check_destination(access, &number)
            .map_err(RegisterError::Pin)?;
        self.check_awaiting(access.account, &sender.name).await?;
        let pin = Pin::draw(|| u32::from_le_bytes(entropy::bytes()));
        let hash = pin.hash(entropy::bytes());
        sender.pin = Some(hash);
        let id = self.registered(self.store.register_sender(&sender).await?)?;
        pass(KillPoint::PinStored);
        self.send_pin(access.account, id, number, pin, &hash)
            .await?;
        pass(KillPoint::PinSent);
        Ok(id)
    }

    fn registered(&self, outcome: Registered) -> Result<SenderId, RegisterError> {
        match outcome {
            Registered::New(id) | Registered::PinAgain(id) => Ok(id),
            Registered::TooSoon(id) => Err(RegisterError::TooSoon(id)),
            Registered::Exists(id, state) => Err(RegisterError::Exists(id, state)),
            Registered::CodeCapReached(capped) => {
                let retry_after_s = capped.retry_after_s(self.clock.now());
                Err(RegisterError::CodeCapReached { retry_after_s })
            }
        }
    }

    /// Whether one more number may wait for its PIN.
    async fn check_awaiting(
        &self,
        account: AccountId,
        name: &SenderName,
    ) -> Result<(), RegisterError> {
        let awaiting = SenderFilter {
            account: Some(account),
            state: Some(SenderState::AwaitingConfirmation),
            after: None,
        };
        let page = ListRange {
            limit: MAX_AWAITING,
            offset: 0,
        };
        let waiting = self.store.list_senders(awaiting, page).await?;
        let is_one_more = !waiting.iter().any(|sender| sender.name == *name);
        if is_one_more && waiting.len() >= MAX_AWAITING as usize {
            return Err(RegisterError::TooMany);
        }
        Ok(())
    }

    /// Sends a PIN. If that fails, the PIN is withdrawn, so that the caller can try again at once.
    async fn send_pin(
        &self,
        account: AccountId,
        id: SenderId,
        number: Msisdn,
        pin: Pin,
        hash: &PinHash,
    ) -> Result<(), RegisterError> {
        let text = pin_text(pin, &number);
        let notice = Notice {
            to: number,
            from: self.pin_from.clone(),
            text,
            carries_code: true,
            paid: false,
            lifetime: PIN_LIFETIME,
        };
        let Err(error) = self.submit.send_notice(account, notice, None).await else {
            return Ok(());
        };
        if let Err(error) = self.store.withdraw_pin(id, hash).await {
            tracing::warn!(%error, "a PIN that was not sent could not be withdrawn; the next one can be requested in a minute");
        }
        Err(RegisterError::Pin(error))
    }

    /// Checks a PIN; the right one approves the number.
    pub async fn confirm(
        &self,
        account: AccountId,
        id: SenderId,
        code: &str,
    ) -> Result<(), ConfirmError> {
        let guess: Pin = code.parse().map_err(|e| Invalid::new(Field::Code, e))?;
        let now = self.clock.now();
        match self.store.confirm_sender(account, id, guess, now).await? {
            Confirmed::Judged(Judgement::Right) => Ok(()),
            Confirmed::Judged(Judgement::Wrong { tries_left }) => {
                Err(ConfirmError::Wrong { tries_left })
            }
            Confirmed::Judged(Judgement::UsedUp) => Err(ConfirmError::UsedUp),
            Confirmed::Judged(Judgement::Expired) => Err(ConfirmError::Expired),
            Confirmed::NotWaiting(state) => Err(ConfirmError::NotWaiting(state)),
            Confirmed::Unknown => Err(ConfirmError::Unknown),
        }
    }

    /// One sender of an account.
    pub async fn find(
        &self,
        account: AccountId,
        id: SenderId,
    ) -> Result<Option<SenderRecord>, StoreError> {
        self.store.find_sender(Some(account), id).await
    }

    /// An account's senders, by ID.
    pub async fn list(
        &self,
        account: AccountId,
        page: ListRange,
    ) -> Result<Vec<SenderRecord>, StoreError> {
        let filter = SenderFilter {
            account: Some(account),
            ..SenderFilter::default()
        };
        self.store.list_senders(filter, page).await
    }
}

fn pin_text(pin: Pin, number: &Msisdn) -> String {
    let (pin, minutes) = (pin.reveal(), PIN_LIFETIME.as_mins());
    format!("{pin} is your confirmation code for {number}. It is valid for {minutes} minutes.")
}

/// What is wrong with each field, for forms. Registering names only the first mistake.
pub fn find_mistakes(order: &SenderInput<'_>) -> Vec<Invalid> {
    let kind = match check_kind(order) {
        Ok(kind) => kind,
        Err(mistake) => return vec![mistake],
    };
    let mistakes = [
        check_name(kind, &order.name).err(),
        check_category(kind, order).err(),
        check_description(kind, order).err(),
        check_url(order).err(),
    ];
    mistakes.into_iter().flatten().collect()
}

fn check(
    account: AccountId,
    order: &SenderInput<'_>,
    now: domain::Timestamp,
) -> Result<NewSender, Invalid> {
    let kind = check_kind(order)?;
    Ok(NewSender {
        account,
        name: check_name(kind, &order.name)?,
        category: check_category(kind, order)?,
        description: check_description(kind, order)?,
        notification_url: check_url(order)?,
        pin: None,
        created_at: now,
    })
}

fn check_kind(order: &SenderInput<'_>) -> Result<SenderKind, Invalid> {
    let kind = order.kind.parse();
    kind.map_err(|e| Invalid::new(Field::SenderKind, e))
}

fn check_category(kind: SenderKind, order: &SenderInput<'_>) -> Result<Option<Category>, Invalid> {
    let category = order.category.as_deref().map(str::parse).transpose();
    let category = category.map_err(|e| Invalid::new(Field::Category, e))?;
    require(kind, category, Field::Category)
}

fn check_url(order: &SenderInput<'_>) -> Result<Option<CallbackUrl>, Invalid> {
    let url = order.notification_url.as_deref().map(CallbackUrl::parse);
    url.transpose()
        .map_err(|e| Invalid::new(Field::NotificationUrl, e))
}

/// Names are reviewed by category and description.
fn require<T>(kind: SenderKind, given: Option<T>, field: Field) -> Result<Option<T>, Invalid> {
    match given {
        None if kind == SenderKind::AlphaNumeric => Err(Invalid::new(
            field,
            "it is missing; a name is reviewed by it",
        )),
        given => Ok(given),
    }
}

/// A number must be one that can receive a PIN.
fn check_name(kind: SenderKind, text: &str) -> Result<SenderName, Invalid> {
    let invalid = |reason: String| {
        let invalid = Invalid::new(Field::SenderName, reason);
        match kind {
            SenderKind::Msisdn => invalid.with_code(Code::INVALID_NUMBER),
            SenderKind::AlphaNumeric => invalid,
        }
    };
    let name = SenderName::parse(kind, text).map_err(|error| invalid(error.to_string()))?;
    match &name {
        SenderName::Msisdn(number) if !numbering::is_possible(number) => {
            let reason = format!(
                "{} is not a possible number; check its calling code and length",
                Quoted(text)
            );
            Err(invalid(reason))
        }
        _ => Ok(name),
    }
}

fn check_description(kind: SenderKind, order: &SenderInput<'_>) -> Result<Option<String>, Invalid> {
    let text = order.description.as_deref();
    let description = text.map(description).transpose()?;
    require(kind, description, Field::CategoryDescription)
}

fn description(text: &str) -> Result<String, Invalid> {
    let is_unprintable = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    let reason = match text.chars().count() {
        _ if text.trim().is_empty() => "it is empty; say what entitles you to the name".to_owned(),
        count if count > MAX_DESCRIPTION_CHARS => {
            format!("it has {count} characters; at most {MAX_DESCRIPTION_CHARS} are taken")
        }
        _ if text.contains(is_unprintable) => "it holds control characters".to_owned(),
        _ => return Ok(text.to_owned()),
    };
    Err(Invalid::new(Field::CategoryDescription, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order<'a>(kind: &'a str, name: &'a str) -> SenderInput<'a> {
        SenderInput {
            name: name.into(),
            kind: kind.into(),
            category: Some("Brand".into()),
            description: Some("our own".into()),
            notification_url: None,
        }
    }

    fn checked(order: &SenderInput<'_>) -> Result<NewSender, String> {
        let account = AccountId::new(1).expect("in range");
        let now = domain::Timestamp::UNIX_EPOCH;
        check(account, order, now).map_err(|invalid| invalid.to_string())
    }

    fn bare<'a>(kind: &'a str, name: &'a str) -> SenderInput<'a> {
        SenderInput {
            category: None,
            description: None,
            ..order(kind, name)
        }
    }

    #[test]
    fn a_name_needs_details_for_its_review_and_a_number_does_not() {
        let fine = checked(&order("AlphaNumeric", "Acme & Co")).expect("fine");
        assert_eq!(fine.category, Some(Category::Brand));
        assert_eq!(fine.description.as_deref(), Some("our own"));
        let number = checked(&bare("MSISDN", "+371 20000001")).expect("fine");
        assert_eq!(number.name.compared(), "37120000001");
        let undescribed = SenderInput {
            description: None,
            ..order("AlphaNumeric", "Acme")
        };
        for (case, order, fragment) in [
            (
                "no category",
                bare("AlphaNumeric", "Acme"),
                "Category: it is missing",
            ),
            (
                "no description",
                undescribed,
                "CategoryDescription: it is missing",
            ),
        ] {
            let error = checked(&order).expect_err(case);
            assert!(error.contains(fragment), "{case}: {error}");
        }
    }

    #[test]
    fn an_invalid_field_is_named() {
        let long = "x".repeat(1001);
        let described = |text| SenderInput {
            description: Some(text),
            ..order("AlphaNumeric", "Acme")
        };
        let category = SenderInput {
            category: Some("Shop".into()),
            ..order("AlphaNumeric", "Acme")
        };
        let url = SenderInput {
            notification_url: Some("ftp://example.com".into()),
            ..order("AlphaNumeric", "Acme")
        };
        for (case, order, fragment) in [
            (
                "kind",
                order("alphanumeric", "Acme"),
                "SenderKind: 'alphanumeric'",
            ),
            ("name", order("AlphaNumeric", "A@B"), "SenderName: 'A@B'"),
            ("local", order("MSISDN", "020000001"), "SenderName"),
            (
                "not possible",
                order("MSISDN", "+3712000000712"),
                "SenderName",
            ),
            ("category", category, "Category: 'Shop'"),
            ("blank", described(" ".into()), "it is empty"),
            ("too long", described(long.into()), "1001 characters"),
            ("control", described("a\0b".into()), "control characters"),
            ("url", url, "NotificationUrl"),
        ] {
            let error = checked(&order).expect_err(case);
            assert!(error.contains(fragment), "{case}: {error}");
        }
    }

    #[test]
    fn the_text_begins_with_the_pin() {
        let pin: Pin = "12345".parse().expect("digits");
        let number = Msisdn::parse("+37120000001").expect("a number");
        assert_eq!(
            pin_text(pin, &number),
            "12345 is your confirmation code for +37120000001. It is valid for 10 minutes."
        );
    }

    #[test]
    fn every_mistake_is_found() {
        let wrong = SenderInput {
            category: None,
            description: Some(" ".into()),
            notification_url: Some("nowhere".into()),
            ..order("AlphaNumeric", "")
        };
        let fields = |order| -> Vec<Field> {
            let mistakes = find_mistakes(&order).into_iter();
            mistakes.map(|mistake| mistake.field).collect()
        };
        let expected = [
            Field::SenderName,
            Field::Category,
            Field::CategoryDescription,
            Field::NotificationUrl,
        ];
        assert_eq!(fields(wrong), expected);
        assert_eq!(fields(order("AlphaNumeric", "Acme")), []);
        assert_eq!(fields(order("odd", "Acme")), [Field::SenderKind]);
    }
}
