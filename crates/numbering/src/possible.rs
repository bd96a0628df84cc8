//! Whether a number can exist at all, fast enough to ask for every message.
//!
//! libphonenumber calls a number possible when its national part has a length that its calling code knows. That much
//! is a table lookup. The library only knows better where a digit too many may be a national prefix that it drops
//! while it reads (`+44 020…`), so a length outside the table is put to the library itself. A length inside the table
//! needs no second look: the library drops a prefix only when what remains is not too short, and none of its rules that
//! rewrite a number makes one too long. The tests hold the table against the library and would show such a rule.

mod lengths;

use domain::Msisdn;
use rlibphonenumber::PHONE_NUMBER_UTIL;

use self::lengths::POSSIBLE_LENGTHS;

/// What the table knows of one calling code.
#[derive(Clone, Copy)]
struct Plan {
    /// How many digits the calling code has; 0 where no calling code starts that way.
    code_digits: u8,
    /// Bit `n` is set where a national part of `n` digits is possible.
    lengths: u16,
}

/// The plan for each group of three leading digits. Calling codes have one to three digits and none is the start of
/// another, so three digits always name at most one.
static PLANS: [Plan; 1000] = plans();

const fn plans() -> [Plan; 1000] {
    let mut plans = [Plan {
        code_digits: 0,
        lengths: 0,
    }; 1000];
    let mut row = 0;
    while row < POSSIBLE_LENGTHS.len() {
        let (code, lengths) = POSSIBLE_LENGTHS[row];
        let (code_digits, span) = match code {
            1..=9 => (1, 100),
            10..=99 => (2, 10),
            _ => (3, 1),
        };
        let mut leading = code as usize * span;
        let end = leading + span;
        while leading < end {
            assert!(
                plans[leading].code_digits == 0,
                "no calling code is the start of another"
            );
            plans[leading] = Plan {
                code_digits,
                lengths: mask(lengths),
            };
            leading += 1;
        }
        row += 1;
    }
    plans
}

const fn mask(lengths: &[u8]) -> u16 {
    let mut mask = 0;
    let mut index = 0;
    while index < lengths.len() {
        mask |= 1 << lengths[index];
        index += 1;
    }
    mask
}

/// Whether libphonenumber holds the number possible.
///
/// Like the library, this also takes a length that is only dialled within an area (seven digits after `+1`).
pub fn is_possible(number: &Msisdn) -> bool {
    match table_verdict(number) {
        Some(verdict) => verdict,
        None => library_verdict(number),
    }
}

/// What the table alone can say; `None` where the library has to be asked.
fn table_verdict(number: &Msisdn) -> Option<bool> {
    let digits = number.digits().as_bytes();
    let leading = digits[..3]
        .iter()
        .fold(0, |leading, digit| leading * 10 + usize::from(digit - b'0'));
    let plan = PLANS[leading];
    if plan.code_digits == 0 {
        return Some(false);
    }
    let national_digits = digits.len() - usize::from(plan.code_digits);
    let is_listed = plan.lengths & (1 << national_digits) != 0;
    (is_listed && !may_hold_eleven_zeros(digits)).then_some(true)
}

/// The library keeps at most ten leading zeros of a national part, so with more of them its length is not what it
/// seems. Eleven zeros in a row within fifteen digits always cover the fifth to the eleventh.
fn may_hold_eleven_zeros(digits: &[u8]) -> bool {
    digits.get(4..11) == Some(b"0000000")
}

#[cold]
fn library_verdict(number: &Msisdn) -> bool {
    PHONE_NUMBER_UTIL
        .parse(number.to_string(), None)
        .is_ok_and(|read| PHONE_NUMBER_UTIL.is_possible_number(&read))
}

#[cfg(test)]
mod tests;
