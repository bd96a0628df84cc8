//! Extracts the digits from a number as it was written.

use super::CorrectionReason;
use crate::plan::Digits;

/// More digits than any number has: fifteen, a dialling-out prefix with a carrier code, and a national prefix.
const MAX_WRITTEN_DIGITS: usize = 24;

/// The zeros of the accepted scripts other than ASCII: full-width, Arabic-Indic and its Persian form.
const ZEROS: [char; 3] = ['０', '٠', '۰'];

/// The prefix that most countries dial before an international number.
const DIALLING_OUT: &[u8] = &[0, 0];

/// A number without its separators.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) has_plus: bool,
    pub(super) digits: Digits,
}

impl Written {
    /// Accepts digits, separators and one leading plus sign.
    ///
    /// libphonenumber would skip a leading word, drop an extension and translate letters by the keypad. A message would
    /// then go to a number that nobody wrote.
    pub(super) fn read(raw: &str) -> Result<Self, CorrectionReason> {
        let mut written = Self::default();
        for character in raw.chars() {
            if let Some(digit) = digit_of(character) {
                if written.digits.len() == MAX_WRITTEN_DIGITS {
                    return Err(CorrectionReason::TooLong);
                }
                written.digits.push(digit);
            } else if is_plus(character) && !written.has_plus && written.digits.is_empty() {
                written.has_plus = true;
            } else if !is_separator(character) {
                return Err(CorrectionReason::NotANumber);
            }
        }
        if written.digits.is_empty() {
            return Err(CorrectionReason::NotANumber);
        }
        Ok(written)
    }

    /// Whether it starts with `+` or `00`.
    pub(super) fn is_international(&self) -> bool {
        self.has_plus || self.digits.starts_with(DIALLING_OUT)
    }

    /// The digits without a leading `00`.
    pub(super) fn international(&self) -> &[u8] {
        self.digits
            .strip_prefix(DIALLING_OUT)
            .unwrap_or(&self.digits)
    }
}

fn digit_of(character: char) -> Option<u8> {
    if character.is_ascii() {
        let byte = character as u8;
        return byte.is_ascii_digit().then(|| byte - b'0');
    }
    ZEROS.iter().find_map(|&zero| {
        let value = u32::from(character).checked_sub(u32::from(zero))?;
        u8::try_from(value).ok().filter(|&value| value < 10)
    })
}

fn is_plus(character: char) -> bool {
    matches!(character, '+' | '＋')
}

fn is_separator(character: char) -> bool {
    let is_bracket_or_stop = matches!(
        character,
        '(' | ')' | '[' | ']' | '（' | '）' | '.' | '．' | '/' | '／'
    );
    // The last one is the Japanese long-vowel mark, which Japanese keyboards produce for a hyphen.
    let is_dash = matches!(
        character,
        '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '－' | 'ー'
    );
    // Contact lists wrap numbers in direction marks, which are copied along.
    let is_invisible = matches!(
        character,
        '\u{AD}' | '\u{200B}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'
            | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
    );
    is_bracket_or_stop || is_dash || is_invisible || character.is_whitespace()
}
