//! A request for SMS messages, and the rules that its fields must meet.

use std::borrow::Cow;
use std::fmt::Display;

use domain::message::schedule::{DEFAULT_EXPIRE_S, MAX_EXPIRE_S, MIN_EXPIRE_S, parse_scheduled};
use domain::message::text::{Coding, Shape, Udh, measure, measure_as};
use domain::message::{MAX_RECIPIENTS, SendTime, TestMode};
use domain::quoted::Quoted;
use domain::{
    AccountId, CallbackUrl, Channel, Code, Country, Msisdn, Originator, Priority, Timestamp,
};
use jiff::SignedDuration;

use super::stages::Checked;
use crate::invalid::{Field, Invalid};

/// The recipients as the caller wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To<'a> {
    /// One number, or several separated by commas.
    Text(Cow<'a, str>),
    /// A list of numbers.
    List(Vec<Cow<'a, str>>),
}

/// A request for SMS messages, every field as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmsInput<'a> {
    pub to: To<'a>,
    pub from: Cow<'a, str>,
    pub message: Cow<'a, str>,
    /// Where delivery reports go.
    pub dlr_url: Option<Cow<'a, str>>,
    pub priority: Option<Cow<'a, str>>,
    /// The send time.
    pub scheduled: Option<Cow<'a, str>>,
    /// The caller's own user data header.
    pub udh: Option<Cow<'a, str>>,
    /// The caller's own choice of coding.
    pub coding: Option<i64>,
    /// Whether sending is only emulated.
    pub test_mode: Option<Cow<'a, str>>,
    /// The validity period, in seconds.
    pub expire_in: Option<i64>,
    /// The country by whose rules the recipients' numbers are corrected.
    pub correct_by: Option<Cow<'a, str>>,
}

impl SmsInput<'_> {
    /// Checks all fields but the originator, which was checked before.
    pub(super) fn check(
        self,
        account: AccountId,
        from: Originator,
        now: Timestamp,
    ) -> Result<Checked, Invalid> {
        let recipients = check_recipients(&self.to, self.correct_by.as_deref())?;
        let udh = self
            .udh
            .as_deref()
            .map(str::parse::<Udh>)
            .transpose()
            .map_err(|e| Invalid::new(Field::Udh, e).with_code(Code::BAD_CODING))?;
        let coding = self.coding.map(check_coding).transpose()?;
        let shape = check_text(&self.message, coding, udh.as_ref())?;
        let dlr_url = check_url(Field::DlrUrl, self.dlr_url.as_deref())?;
        let priority = check_priority(self.priority.as_deref())?;
        let send = check_scheduled(self.scheduled.as_deref(), now)?;
        let test_mode = self.test_mode.as_deref().map(check_test_mode).transpose()?;
        let validity = check_expire_in(self.expire_in)?;
        Ok(Checked {
            account,
            channel: Channel::Sms,
            recipients,
            from: Some(from),
            text: self.message.into_owned(),
            carries_code: false,
            notice: false,
            interactive: None,
            shape,
            udh,
            coding_given: coding.is_some(),
            dlr_url,
            priority,
            send,
            accepted_at: now,
            expires_at: send.due_at(now) + validity,
            test_mode,
            charged_parts: if test_mode.is_some() { 0 } else { shape.parts },
            trace: None,
        })
    }
}

pub(super) fn check_recipients(
    to: &To<'_>,
    correct_by: Option<&str>,
) -> Result<Vec<Msisdn>, Invalid> {
    let country = check_country(correct_by)?;
    let recipient = |value: &str| check_recipient(value, country);
    let recipients: Vec<Msisdn> = match to {
        To::Text(one) if !one.contains(',') => vec![recipient(one)?],
        To::Text(several) => bounded(several.split(','), several.split(',').count())?
            .map(recipient)
            .collect::<Result<_, _>>()?,
        To::List(list) => bounded(list.iter(), list.len())?
            .map(|one| recipient(one))
            .collect::<Result<_, _>>()?,
    };
    if recipients.is_empty() {
        return Err(Invalid::new(
            Field::Recipients,
            "the list is empty; name at least one recipient",
        ));
    }
    Ok(recipients)
}

/// Whether a number is one that a message can be sent to, by its form.
pub fn is_recipient(number: &str) -> bool {
    check_recipient(number, None).is_ok()
}

/// One recipient, completed for the country `correct_by`.
pub(crate) fn check_one(to: &str, correct_by: Option<&str>) -> Result<Msisdn, Invalid> {
    check_recipient(to, check_country(correct_by)?)
}

fn check_country(correct_by: Option<&str>) -> Result<Option<Country>, Invalid> {
    let country = correct_by.map(Country::parse).transpose();
    country.map_err(|e| Invalid::new(Field::CorrectBy, e))
}

pub(super) fn no_price(to: &Msisdn, country: Option<Country>) -> Invalid {
    let location = country.map_or("a number of no country".to_owned(), |country| {
        country.name().to_owned()
    });
    Invalid::new(
        Field::Recipients,
        format!("{to} ({location}) has no price, so nothing can be sent there"),
    )
    .with_code(Code::NO_ROUTE)
}

fn bounded<I>(recipients: I, count: usize) -> Result<I, Invalid> {
    if count > MAX_RECIPIENTS {
        let reason =
            format!("{count} recipients are more than {MAX_RECIPIENTS}; split the request");
        return Err(Invalid::new(Field::Recipients, reason));
    }
    Ok(recipients)
}

fn check_recipient(value: &str, country: Option<Country>) -> Result<Msisdn, Invalid> {
    if let Some(country) = country {
        return numbering::correct(value, country).map_err(invalid_number);
    }
    let number = Msisdn::parse(value).map_err(invalid_number)?;
    if !numbering::is_possible(&number) {
        let reason = format!(
            "{} is not a possible number; check its calling code and length",
            Quoted(value)
        );
        return Err(invalid_number(reason));
    }
    Ok(number)
}

fn invalid_number(reason: impl Display) -> Invalid {
    Invalid::new(Field::Recipients, reason).with_code(Code::INVALID_NUMBER)
}

pub(super) fn check_url(field: Field, url: Option<&str>) -> Result<Option<CallbackUrl>, Invalid> {
    let url = url.map(CallbackUrl::parse).transpose();
    url.map_err(|e| Invalid::new(field, e))
}

pub(super) fn check_priority(name: Option<&str>) -> Result<Priority, Invalid> {
    let priority = name.map(str::parse).transpose();
    let priority = priority.map_err(|e| Invalid::new(Field::Priority, e))?;
    Ok(priority.unwrap_or_default())
}

fn check_coding(number: i64) -> Result<Coding, Invalid> {
    u8::try_from(number)
        .ok()
        .and_then(Coding::from_number)
        .ok_or_else(|| {
            Invalid::new(
                Field::Coding,
                format!("{number} is not a coding; give 0 (GSM-7), 1 (8-bit) or 2 (UCS-2)"),
            )
            .with_code(Code::BAD_CODING)
        })
}

fn check_text(text: &str, coding: Option<Coding>, udh: Option<&Udh>) -> Result<Shape, Invalid> {
    let shape = match (coding, udh) {
        (Some(coding), udh) => measure_as(text, coding, udh),
        (None, None) => measure(text),
        (None, Some(_)) => {
            return Err(Invalid::new(
                Field::Udh,
                "it was given without a coding; give 0 (GSM-7), 1 (8-bit) or 2 (UCS-2)",
            )
            .with_code(Code::BAD_CODING));
        }
    };
    shape.map_err(|error| Invalid {
        code: error.code(),
        ..Invalid::new(Field::Message, error)
    })
}

pub(super) fn check_scheduled(value: Option<&str>, now: Timestamp) -> Result<SendTime, Invalid> {
    let Some(value) = value else {
        return Ok(SendTime::Now);
    };
    let at = parse_scheduled(value, now).map_err(|e| Invalid::new(Field::SendTime, e))?;
    Ok(at.map_or(SendTime::Now, SendTime::At))
}

pub(super) fn check_test_mode(value: &str) -> Result<TestMode, Invalid> {
    let mode = match value {
        "1" => Some(TestMode::Deliver),
        "2" => Some(TestMode::Fail),
        _ => None,
    };
    let reason = || {
        format!(
            "{} is not a test mode; give 1 (emulate success) or 2 (emulate failure)",
            Quoted(value)
        )
    };
    mode.ok_or_else(|| Invalid::new(Field::TestMode, reason()))
}

fn check_expire_in(seconds: Option<i64>) -> Result<SignedDuration, Invalid> {
    let seconds = seconds.unwrap_or(i64::from(DEFAULT_EXPIRE_S));
    let (min, max) = (i64::from(MIN_EXPIRE_S), i64::from(MAX_EXPIRE_S));
    let broken = match seconds {
        _ if seconds < min => format!("{seconds} is below {min}"),
        _ if seconds > max => format!("{seconds} is above {max}"),
        _ => return Ok(SignedDuration::from_secs(seconds)),
    };
    Err(Invalid::new(
        Field::ExpireIn,
        format!("{broken}; give {min} to {max} seconds"),
    ))
}
