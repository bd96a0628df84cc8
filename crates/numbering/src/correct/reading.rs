//! Splits a number into calling code and national part, as libphonenumber does.
//!
//! This follows the rules of libphonenumber's `parse`, for digits only. The order of the steps decides the result, so
//! it is the same here even where another order would be simpler.

use domain::number::msisdn::MIN_DIGITS;
use domain::{Country, Msisdn};

use super::written::Written;
use super::{Corrected, CorrectionReason};
use crate::plan::{self, CallingCode, DiallingRegion, Digits, Length, Owner};

const MIN_NATIONAL_DIGITS: usize = 2;
/// Two more than E.164 allows, because German numbers may have them.
const MAX_NATIONAL_DIGITS: usize = 17;

const MAX_CODE_DIGITS: usize = 3;

/// The index of a calling code's main region.
const MAIN_REGION: usize = 0;

#[derive(Clone, Copy)]
pub(crate) struct Reading {
    plan: &'static CallingCode,
    national: Digits,
}

pub(crate) type ReadResult = Result<Reading, CorrectionReason>;

/// Reads the number as somebody in the country would dial it.
///
/// With `+` or `00` it is never a local number. libphonenumber reads `00` as the start of a local number in countries
/// that dial another prefix.
pub(super) fn for_country(written: &Written, country: Country) -> ReadResult {
    let Some(dialled_from) = plan::find_region(country) else {
        return if written.is_international() {
            international(written)
        } else {
            Err(CorrectionReason::NoPlan)
        };
    };
    if written.has_plus {
        return match with_calling_code(&written.digits) {
            // Some people write `+` before the dialling-out prefix instead of in place of it.
            Err(CorrectionReason::NoCallingCode) => after_dial_out(dialled_from, &written.digits)
                .unwrap_or_else(|| international(written)),
            read => read,
        };
    }
    match after_dial_out(dialled_from, &written.digits) {
        Some(read) => read,
        None if written.is_international() => international(written),
        None => local(dialled_from, &written.digits),
    }
}

/// Reads the number as one that starts with a calling code.
pub(super) fn international(written: &Written) -> ReadResult {
    with_calling_code(written.international())
}

fn after_dial_out(dialled_from: DiallingRegion, digits: &[u8]) -> Option<ReadResult> {
    dialled_from
        .plan
        .after_dial_out(dialled_from.region, digits)
        .map(with_calling_code)
}

fn local(dialled_from: DiallingRegion, digits: &Digits) -> ReadResult {
    match without_own_code(dialled_from, digits) {
        Some(national) => complete(dialled_from.plan, MAIN_REGION, &national),
        None => complete(dialled_from.plan, dialled_from.region, digits),
    }
}

/// Reads digits that start with a calling code.
pub(crate) fn with_calling_code(digits: &[u8]) -> ReadResult {
    if digits.len() <= MIN_NATIONAL_DIGITS {
        return Err(CorrectionReason::TooShort);
    }
    let (plan, national) =
        plan::split_calling_code(digits).ok_or(CorrectionReason::NoCallingCode)?;
    complete(plan, MAIN_REGION, &national.into())
}

/// Removes the country's own calling code, if the digits fit the plan better without it.
fn without_own_code(dialled_from: DiallingRegion, digits: &[u8]) -> Option<Digits> {
    let DiallingRegion { plan, region } = dialled_from;
    let national = Digits::from(digits.strip_prefix(plan.digits())?);
    let national = plan.without_prefix(region, &national);
    let is_better =
        !plan.matches_general(region, digits) && plan.matches_general(region, &national);
    let is_too_long = plan.length(region, digits.len()) == Length::TooLong;
    (is_better || is_too_long).then_some(national)
}

/// Turns a national part, as dialled in a region, into a number.
fn complete(plan: &'static CallingCode, region: usize, dialled: &Digits) -> ReadResult {
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
    /// The number and its owner, if it is in use.
    pub(super) fn valid(&self) -> Option<Corrected> {
        let Owner { country, kind } = self.plan.owner(&self.national)?;
        Some(Corrected {
            number: self.number().ok()?,
            country,
            kind,
        })
    }

    /// The number, if its plan has numbers of this length.
    pub(super) fn possible(&self) -> Option<Msisdn> {
        (self.length() == Length::Whole).then(|| self.number().ok())?
    }

    /// Explains why the number is not valid.
    pub(super) fn fault(&self) -> CorrectionReason {
        match self.length() {
            Length::TooShort => CorrectionReason::TooShort,
            Length::TooLong => CorrectionReason::TooLong,
            Length::Local => CorrectionReason::NoAreaCode,
            Length::Between => CorrectionReason::WrongLength,
            Length::Whole => self.number().err().unwrap_or(CorrectionReason::NotInUse),
        }
    }

    pub(crate) fn length(&self) -> Length {
        self.plan.length(MAIN_REGION, self.national.len())
    }

    fn number(&self) -> Result<Msisdn, CorrectionReason> {
        let mut text = [0; MAX_CODE_DIGITS + MAX_NATIONAL_DIGITS];
        let digits = self.plan.digits().iter().chain(&*self.national);
        let count = text
            .iter_mut()
            .zip(digits)
            .map(|(slot, digit)| *slot = b'0' + digit)
            .count();
        let text = str::from_utf8(&text[..count]).expect("only digits are written");
        Msisdn::parse(text).map_err(|_| match count {
            ..MIN_DIGITS => CorrectionReason::TooShort,
            _ => CorrectionReason::TooLong,
        })
    }
}
