//! A short list of digits on the stack.

use std::ops::Deref;

use domain::Msisdn;

/// The longest accepted input plus the longest area code that a plan adds.
const MAX_DIGITS: usize = 31;

/// Digits by their value, 0 to 9.
#[derive(Clone, Copy, Default)]
pub(crate) struct Digits {
    values: [u8; MAX_DIGITS],
    len: u8,
}

impl Digits {
    pub(crate) fn push(&mut self, digit: u8) {
        self.values[usize::from(self.len)] = digit;
        self.len += 1;
    }

    pub(crate) fn extend(&mut self, digits: &[u8]) {
        let start = usize::from(self.len);
        self.values[start..start + digits.len()].copy_from_slice(digits);
        self.len += u8::try_from(digits.len()).expect("the copy above checked it");
    }
}

impl From<&[u8]> for Digits {
    fn from(digits: &[u8]) -> Self {
        let mut copy = Self::default();
        copy.extend(digits);
        copy
    }
}

impl From<&Msisdn> for Digits {
    fn from(number: &Msisdn) -> Self {
        let mut digits = Self::default();
        number
            .digits()
            .bytes()
            .for_each(|digit| digits.push(digit - b'0'));
        digits
    }
}

impl Deref for Digits {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.values[..usize::from(self.len)]
    }
}
