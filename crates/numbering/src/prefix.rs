//! The first digits of a number, which tell where it goes.

use domain::Msisdn;

use crate::plan;

/// How many digits after the calling code belong to the area.
const AREA_DIGITS: usize = 3;

/// The calling code of a number and the first three digits after it, such as 371200 or 44770.
pub fn area(number: &Msisdn) -> u32 {
    let code_digits = plan::calling_code_digits(number).unwrap_or(AREA_DIGITS);
    let digits = number.digits().bytes().take(code_digits + AREA_DIGITS);
    digits.fold(0, |area, digit| area * 10 + u32::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_begins_with_the_calling_code() {
        for (number, expected) in [
            ("+37120000001", 371_200),
            ("+447700900123", 44_770),
            ("+12025550123", 1_202),
            ("+79161234567", 7_916),
            ("+99912345678", 999_123),
        ] {
            let number = Msisdn::parse(number).expect("a number");
            assert_eq!(area(&number), expected, "{number}");
        }
    }
}
