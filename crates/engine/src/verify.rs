//! One-time codes as a service: an account has a code sent to a number, and checks what the person entered.

use std::borrow::Cow;
use std::sync::Arc;

use domain::ports::{NewVerification, Started, StoreError, VerifyStore};
use domain::verify::{
    CodeLength, DEFAULT_LIFETIME_S, Judgement, MAX_LIFETIME_S, MIN_LIFETIME_S, NetworkConversion,
    OneTimeCode, PrefixConversion, Template, Verification, VerificationState, WINDOW,
};
use domain::{Access, AccountId, Clock, Code, Msisdn, Originator, VerificationId};
use jiff::SignedDuration;

use crate::entropy;
use crate::invalid::{Field, Invalid};
use crate::sending::submit::{
    IdempotentRequest, Notice, Submit, SubmitError, check_active, check_one,
};

/// A code to send, every field as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyInput<'a> {
    pub to: Cow<'a, str>,
    /// The originator; that of PINs if there is none.
    pub from: Option<Cow<'a, str>>,
    /// The number of digits.
    pub length: Option<i64>,
    /// How long the code is valid, in seconds.
    pub expire_in: Option<i64>,
    /// The text, with a placeholder for the code.
    pub message: Option<Cow<'a, str>>,
    /// The country by whose rules the number is corrected.
    pub correct_by: Option<Cow<'a, str>>,
}

/// A code that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentCode {
    pub id: VerificationId,
    pub to: Msisdn,
    pub expires_at: domain::Timestamp,
}

/// Why no code was sent.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A field breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A code was sent to this number less than half a minute ago.
    #[error("the code of verification {0} was sent less than half a minute ago")]
    TooSoon(VerificationId),
    /// The number or the account has reached its limit of codes.
    #[error("too many codes were sent")]
    CodeCapReached {
        /// Seconds until the next code may be sent.
        retry_after_s: u32,
    },
    /// Nearly no code to numbers that begin like this one is entered.
    #[error("codes to these numbers are slowed down")]
    Slowed {
        /// Seconds until the next code may be sent.
        retry_after_s: u32,
    },
    /// The recipient opted out, or the message is blocked.
    #[error("the message is refused with code {}", .0.number())]
    Refused(Code),
    /// The message could not be sent, or the account may not send it.
    #[error("the code could not be sent")]
    Send(#[source] SubmitError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a guess was not right.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It is no code, or has another number of digits. It costs no try.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("the code is wrong")]
    Wrong {
        /// How many more guesses are allowed.
        tries_left: u32,
    },
    /// The verification is not pending any more.
    #[error("the verification is {}", .0.name())]
    Over(VerificationState),
    /// The account has no such verification.
    #[error("there is no such verification")]
    Unknown,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Sends codes and checks them.
pub struct Verify {
    store: Arc<dyn VerifyStore>,
    clock: Arc<dyn Clock>,
    submit: Arc<Submit>,
    from: Originator,
    conversions: Conversions,
}

/// A checked request.
struct Request {
    to: Msisdn,
    from: Originator,
    code: OneTimeCode,
    text: String,
    lifetime: SignedDuration,
}

impl Verify {
    /// Codes are sent from `from`, unless the caller names an originator.
    pub fn new(
        store: Arc<dyn VerifyStore>,
        clock: Arc<dyn Clock>,
        submit: Arc<Submit>,
        from: Originator,
    ) -> Self {
        Self {
            conversions: Conversions::new(store.clone(), clock.clone()),
            store,
            clock,
            submit,
            from,
        }
    }

    /// How many codes are entered.
    pub fn conversions(&self) -> &Conversions {
        &self.conversions
    }

    /// Sends a code. The account pays for the message as for any other. A repetition of a request that had been accepted
    /// gets its answer, and nothing is sent again.
    pub async fn start(
        &self,
        access: &Access,
        input: VerifyInput<'_>,
        repeatable: Option<IdempotentRequest>,
    ) -> Result<SentCode, StartError> {
        check_active(access).map_err(StartError::Send)?;
        if let Some(request) = &repeatable
            && let Some(sent) = self.find_sent(access.account, request).await?
        {
            return Ok(sent);
        }
        let sent = self.start_new(access, input, repeatable).await;
        match &sent {
            Ok(_) => count("sent"),
            Err(StartError::Slowed { .. }) => count("slowed"),
            Err(StartError::CodeCapReached { .. }) => count("limited"),
            Err(_) => {}
        }
        sent
    }

    /// The answer to an earlier, identical request. The key is stored together with the message, so the code of a
    /// verification without one was never sent.
    async fn find_sent(
        &self,
        account: AccountId,
        request: &IdempotentRequest,
    ) -> Result<Option<SentCode>, StartError> {
        let answer = self.submit.find_answer(account, request).await;
        if answer.map_err(StartError::Send)?.is_none() {
            return Ok(None);
        }
        let found = self.store.find_keyed_verification(account, request.key());
        match found.await? {
            Some(found) => Ok(Some(SentCode {
                id: found.id,
                to: found.to,
                expires_at: found.expires_at,
            })),
            // Another operation used the key.
            None => Err(StartError::Send(SubmitError::KeyConflict)),
        }
    }

    async fn start_new(
        &self,
        access: &Access,
        input: VerifyInput<'_>,
        repeatable: Option<IdempotentRequest>,
    ) -> Result<SentCode, StartError> {
        let request = self.check_input(access, input).await?;
        let location = self.submit.locate(access.account, &request.to);
        let now = self.clock.now();
        let expires_at = now + request.lifetime;
        let new = NewVerification {
            account: access.account,
            to: request.to,
            prefix: numbering::area(&request.to),
            network: location.network,
            country: location.country,
            length: request.code.length(),
            hash: request.code.hash(entropy::bytes()),
            created_at: now,
            expires_at,
            key: repeatable.as_ref().map(|request| *request.key()),
        };
        let id = self.started(self.store.start_verification(&new).await?)?;
        let to = request.to;
        self.send(access.account, id, request, repeatable).await?;
        Ok(SentCode { id, to, expires_at })
    }

    async fn check_input(
        &self,
        access: &Access,
        input: VerifyInput<'_>,
    ) -> Result<Request, StartError> {
        let to = check_one(&input.to, input.correct_by.as_deref())?;
        let length = check_length(input.length)?;
        let lifetime = check_lifetime(input.expire_in)?;
        let template = match input.message.as_deref() {
            Some(text) => Template::parse(text).map_err(|e| Invalid::new(Field::Message, e))?,
            None => Template::for_lifetime(lifetime),
        };
        let from = match input.from.as_deref() {
            Some(from) => self.submit.originator(access, from).await,
            None => Ok(self.from.clone()),
        };
        let from = from.map_err(send_error)?;
        self.submit
            .check_destination(access, &to)
            .map_err(send_error)?;
        let code = OneTimeCode::draw(length, || u64::from_le_bytes(entropy::bytes()));
        let text = template.fill(&code);
        if let Some(code) = self.submit.find_refusal(access.account, &to, &from, &text) {
            return Err(StartError::Refused(code));
        }
        Ok(Request {
            to,
            from,
            code,
            text,
            lifetime,
        })
    }

    fn started(&self, outcome: Started) -> Result<VerificationId, StartError> {
        let now = self.clock.now();
        match outcome {
            Started::New(id) => Ok(id),
            Started::TooSoon(id) => Err(StartError::TooSoon(id)),
            Started::CodeCapReached(capped) => Err(StartError::CodeCapReached {
                retry_after_s: capped.retry_after_s(now),
            }),
            Started::Slowed(slowed) => Err(StartError::Slowed {
                retry_after_s: slowed.retry_after_s(now),
            }),
        }
    }

    /// Sends the message. If that fails, the verification is withdrawn, so that the caller can try again at once.
    async fn send(
        &self,
        account: AccountId,
        id: VerificationId,
        request: Request,
        repeatable: Option<IdempotentRequest>,
    ) -> Result<(), StartError> {
        let notice = Notice {
            to: request.to,
            from: request.from,
            text: request.text,
            carries_code: true,
            paid: true,
            lifetime: request.lifetime,
        };
        let is_repeatable = repeatable.is_some();
        let sent = self.submit.send_notice(account, notice, repeatable).await;
        let Err(error) = sent else {
            return Ok(());
        };
        // The message may have been stored, with its key. Then a repetition finds the verification.
        if is_repeatable && matches!(error, SubmitError::Store(_)) {
            return Err(send_error(error));
        }
        if let Err(error) = self.store.withdraw_verification(id).await {
            tracing::warn!(%error, "a code that was not sent could not be withdrawn; the next one can be requested in half a minute");
        }
        Err(send_error(error))
    }

    /// Checks what a person entered; the right code approves the verification.
    pub async fn check(
        &self,
        account: AccountId,
        id: VerificationId,
        code: &str,
    ) -> Result<(), CheckError> {
        let guess: OneTimeCode = code.parse().map_err(|e| Invalid::new(Field::Code, e))?;
        let now = self.clock.now();
        let judged = self.store.check_verification(account, id, &guess, now);
        match judged.await? {
            None => Err(CheckError::Unknown),
            Some(Judgement::Right) => {
                count("approved");
                Ok(())
            }
            Some(Judgement::Wrong { tries_left }) => {
                if tries_left == 0 {
                    count("failed");
                }
                Err(CheckError::Wrong { tries_left })
            }
            Some(Judgement::Over(state)) => Err(CheckError::Over(state)),
            Some(Judgement::WrongLength(length)) => {
                let reason = format!(
                    "the code that was sent has {} digits; give all of them",
                    length.digits()
                );
                Err(Invalid::new(Field::Code, reason).into())
            }
        }
    }

    /// One verification of an account, with its state at present.
    pub async fn find(
        &self,
        account: AccountId,
        id: VerificationId,
    ) -> Result<Option<Verification>, StoreError> {
        let found = self.store.find_verification(account, id).await?;
        Ok(found.map(|verification| self.at_present(verification)))
    }

    /// Verifications of an account, the newest first, with their states at present.
    pub async fn list(
        &self,
        account: AccountId,
        before: Option<VerificationId>,
        limit: u32,
    ) -> Result<Vec<Verification>, StoreError> {
        let found = self
            .store
            .list_verifications(account, before, limit)
            .await?;
        let found = found.into_iter();
        Ok(found.map(|one| self.at_present(one)).collect())
    }

    fn at_present(&self, verification: Verification) -> Verification {
        Verification {
            state: verification.state_at(self.clock.now()),
            ..verification
        }
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("switchboard_verifications_total", "outcome" => outcome).increment(1);
}

/// How many codes of the last day were entered.
pub struct Conversions {
    store: Arc<dyn VerifyStore>,
    clock: Arc<dyn Clock>,
}

impl Conversions {
    pub fn new(store: Arc<dyn VerifyStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// The prefixes with the most codes, of one account or of each.
    pub async fn list(
        &self,
        account: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<PrefixConversion>, StoreError> {
        let since = self.clock.now() - WINDOW;
        self.store.list_conversions(account, since, limit).await
    }

    /// The networks with the most codes, of one account or of all together.
    pub async fn networks(
        &self,
        account: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<NetworkConversion>, StoreError> {
        let since = self.clock.now() - WINDOW;
        let found = self.store.list_network_conversions(account, since, limit);
        found.await
    }
}

/// A mistake in a field is an error of that field, whether it is found here or while sending.
fn send_error(error: SubmitError) -> StartError {
    match error {
        SubmitError::Invalid(invalid) => invalid.into(),
        other => StartError::Send(other),
    }
}

fn check_length(digits: Option<i64>) -> Result<CodeLength, Invalid> {
    let length = digits.map(CodeLength::new).transpose();
    let length = length.map_err(|e| Invalid::new(Field::CodeLength, e))?;
    Ok(length.unwrap_or_default())
}

fn check_lifetime(seconds: Option<i64>) -> Result<SignedDuration, Invalid> {
    let seconds = seconds.unwrap_or(DEFAULT_LIFETIME_S.into());
    let (min, max) = (i64::from(MIN_LIFETIME_S), i64::from(MAX_LIFETIME_S));
    let broken = match seconds {
        _ if seconds < min => format!("{seconds} is below {min}"),
        _ if seconds > max => format!("{seconds} is above {max}"),
        _ => return Ok(SignedDuration::from_secs(seconds)),
    };
    let reason = format!("{broken}; give {min} to {max} seconds");
    Err(Invalid::new(Field::ExpireIn, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_lifetimes_are_checked() {
        for (length, lifetime, fragment) in [
            (None, None, None),
            (Some(4), Some(60), None),
            (Some(10), Some(3600), None),
            (Some(3), None, Some("CodeLength: 3 is not a code length")),
            (Some(11), None, Some("4 to 10 digits")),
            (None, Some(59), Some("ExpireIn: 59 is below 60")),
            (None, Some(3601), Some("3601 is above 3600")),
        ] {
            let checked = check_length(length).and_then(|_| check_lifetime(lifetime));
            let error = checked.err().map(|invalid| invalid.to_string());
            match (&error, fragment) {
                (None, None) => {}
                (Some(error), Some(fragment)) => assert!(error.contains(fragment), "{error}"),
                _ => panic!("{length:?} {lifetime:?}: {error:?}"),
            }
        }
        assert_eq!(check_length(None).map(CodeLength::digits), Ok(6));
    }
}
