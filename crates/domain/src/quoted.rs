//! Quotes a caller's value in an error text.

use std::fmt::{self, Write as _};

const MAX_CHARS: usize = 40;

/// A quoted value: control characters are escaped and long values cut, so that an error text stays short and cannot
/// break a log line.
#[derive(Debug, Clone, Copy)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('\'')?;
        for c in self.0.chars().take(MAX_CHARS) {
            if c.is_control() {
                write!(f, "{}", c.escape_unicode())?;
            } else {
                f.write_char(c)?;
            }
        }
        if self.0.chars().nth(MAX_CHARS).is_some() {
            f.write_char('…')?;
        }
        f.write_char('\'')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_control_characters_escaped() {
        for (value, shown) in [
            ("abc", "'abc'".to_owned()),
            ("", "''".to_owned()),
            ("a\nb", "'a\\u{a}b'".to_owned()),
            (&"ä".repeat(40), format!("'{}'", "ä".repeat(40))),
            (&"ä".repeat(41), format!("'{}…'", "ä".repeat(40))),
        ] {
            assert_eq!(Quoted(value).to_string(), shown);
        }
    }
}
