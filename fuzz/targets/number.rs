//! Fuzzes the correction of numbers. The input is a country code of two letters, then the number as written.
//!
//! - A corrected number is E.164: 7 to 15 digits without a leading 0, and possible by its plan.
//! - Correcting or examining a number in use again changes nothing.
//! - `examine` and `correct` agree on numbers in use.
#![no_main]

use domain::{Country, Msisdn};
use libfuzzer_sys::fuzz_target;

fn assert_e164(number: &Msisdn) {
    let digits = number.digits();
    assert!((7..=15).contains(&digits.len()), "{digits}");
    assert!(digits.bytes().all(|b| b.is_ascii_digit()), "{digits}");
    assert!(!digits.starts_with('0'), "{digits}");
    assert_eq!(Msisdn::parse(digits).as_ref(), Ok(number));
    assert!(numbering::is_possible(number), "{digits}");
}

fuzz_target!(|input: &str| {
    let Some((country, raw)) = input.split_at_checked(2) else {
        return;
    };
    let country = Country::parse(country).ok();
    let examined = numbering::examine(raw, country);
    if let Ok(examined) = &examined {
        assert_e164(&examined.number);
        let again = numbering::examine(&format!("+{}", examined.number.digits()), None);
        assert_eq!(again.as_ref(), Ok(examined), "examined again");
    }
    let Some(country) = country else { return };
    match numbering::correct(raw, country) {
        Ok(number) => {
            assert_e164(&number);
            // A number that is only possible may still contain another national prefix, as with libphonenumber.
            if let Ok(examined) = examined {
                assert_eq!(examined.number, number);
                let again = numbering::correct(&format!("+{}", number.digits()), country);
                assert_eq!(again, Ok(number), "corrected again");
            }
        }
        Err(error) => {
            assert!(examined.is_err(), "in use, but not corrected: {error}");
            assert!(error.to_string().chars().count() <= 500, "{error}");
        }
    }
});
