//! A number as libphonenumber reads it: its calling code and its national part.
//!
//! This follows the rules of libphonenumber's `parse`, for digits alone. The order of its steps, and what it looks at
//! in each, decide what a number becomes, so they are kept even where another order would seem simpler.

use domain::number::msisdn::MIN_DIGITS;
use domain::{Country, Msisdn};

use super::written::Written;
use super::{Corrected, CorrectionReason};
use crate::plan::{self, CallingCode, Digits, Home, Length, Owner};

/// A national part has at least so many digits.
const MIN_NATIONAL_DIGITS: usize = 2;
/// A national part has at most so many digits: two more than E.164 allows, as German ones may have.
const MAX_NATIONAL_DIGITS: usize = 17;

/// A calling code has at most so many digits.
const MAX_CODE_DIGITS: usize = 3;

/// The main region of a calling code.
const MAIN_REGION: usize = 0;

/// A number that was read.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    plan: &'static CallingCode,
    national: Digits,
}

/// The number, or why the digits are none.
pub(crate) type Read = Result<Reading, CorrectionReason>;

/// The number as somebody in the country would dial it.
///
/// With `+` or `00` it is never a local number. libphonenumber takes `00` for the start of one where another prefix is
/// dialled.
pub(super) fn for_country(written: &Written, country: Country) -> Read {
    let Some(home) = plan::of_country(country) else {
        return if written.says_international() {
            international(written)
        } else {
            Err(CorrectionReason::NoPlan)
        };
    };
    if written.has_plus {
        return match with_calling_code(&written.digits) {
            // Some write `+` before the prefix that it stands for.
            Err(CorrectionReason::NoCallingCode) => {
                after_dial_out(home, &written.digits).unwrap_or_else(|| international(written))
            }
            read => read,
        };
    }
    match after_dial_out(home, &written.digits) {
        Some(read) => read,
        None if written.says_international() => international(written),
        None => local(home, &written.digits),
    }
}

/// The number as one that starts with a calling code.
pub(super) fn international(written: &Written) -> Read {
    with_calling_code(written.international())
}

fn after_dial_out(home: Home, digits: &[u8]) -> Option<Read> {
    home.plan
        .after_dial_out(home.region, digits)
        .map(with_calling_code)
}

fn local(home: Home, digits: &Digits) -> Read {
    match without_own_code(home, digits) {
        Some(national) => complete(home.plan, MAIN_REGION, &national),
        None => complete(home.plan, home.region, digits),
    }
}

/// The number of digits that start with a calling code.
pub(crate) fn with_calling_code(digits: &[u8]) -> Read {
    if digits.len() <= MIN_NATIONAL_DIGITS {
        return Err(CorrectionReason::TooShort);
    }
    let (plan, national) = plan::of_number(digits).ok_or(CorrectionReason::NoCallingCode)?;
    complete(plan, MAIN_REGION, &national.into())
}

/// What follows the country's own calling code, where the digits make more sense without it.
fn without_own_code(home: Home, digits: &[u8]) -> Option<Digits> {
    let Home { plan, region } = home;
    let national = Digits::from(digits.strip_prefix(plan.digits())?);
    let national = plan.without_prefix(region, &national);
    let is_better = !plan.knows(region, digits) && plan.knows(region, &national);
    let is_too_long = plan.length(region, digits.len()) == Length::TooLong;
    (is_better || is_too_long).then_some(national)
}

/// The number of a national part as it is dialled in a region.
fn complete(plan: &'static CallingCode, region: usize, dialled: &Digits) -> Read {
    if dialled.len() < MIN_NATIONAL_DIGITS {
        return Err(CorrectionReason::TooShort);
    }
    let stripped = plan.without_prefix(region, dialled);
    let national = match plan.length(region, stripped.len()) {
        Length::Whole | Length::TooLong => stripped,
        Length::TooShort | Length::Local | Length::Between => *dialled,
    };
    match national.len() {
        ..MIN_NATIONAL_DIGITS => Err(CorrectionReason::TooShort),
        MIN_NATIONAL_DIGITS..=MAX_NATIONAL_DIGITS => Ok(Reading { plan, national }),
        _ => Err(CorrectionReason::TooLong),
    }
}

impl Reading {
    /// The number with its owner, if it is one in use.
    pub(super) fn valid(&self) -> Option<Corrected> {
        let Owner { country, kind } = self.plan.owner(&self.national)?;
        Some(Corrected {
            number: self.number().ok()?,
            country,
            kind,
        })
    }

    /// The number, if there may be one of its length.
    pub(super) fn possible(&self) -> Option<Msisdn> {
        (self.length() == Length::Whole).then(|| self.number().ok())?
    }

    /// What speaks against a number that is not valid.
    pub(super) fn fault(&self) -> CorrectionReason {
        match self.length() {
            Length::TooShort => CorrectionReason::TooShort,
            Length::TooLong => CorrectionReason::TooLong,
            Length::Local => CorrectionReason::NoAreaCode,
            Length::Between => CorrectionReason::WrongLength,
            Length::Whole => self.number().err().unwrap_or(CorrectionReason::NotInUse),
        }
    }

    /// What its length says of it.
    pub(crate) fn length(&self) -> Length {
        self.plan.length(MAIN_REGION, self.national.len())
    }

    /// The number in international form.
    fn number(&self) -> Result<Msisdn, CorrectionReason> {
        let mut text = [0; MAX_CODE_DIGITS + MAX_NATIONAL_DIGITS];
        let digits = self.plan.digits().iter().chain(&*self.national);
        let count = text
            .iter_mut()
            .zip(digits)
            .map(|(place, digit)| *place = b'0' + digit)
            .count();
        let text = str::from_utf8(&text[..count]).expect("only digits are written");
        Msisdn::parse(text).map_err(|_| match count {
            ..MIN_DIGITS => CorrectionReason::TooShort,
            _ => CorrectionReason::TooLong,
        })
    }
}
