//! Finds and removes prefixes that are dialled before a number.

use super::digits::Digits;
use super::pattern::{Program, Step};

/// The largest number of groups in any plan's prefix.
const MAX_GROUPS: usize = 2;

/// A pattern that the start of a number may match.
pub(super) struct Prefix {
    program: Program,
}

/// The end of a matched prefix, and the range of each of its groups.
#[derive(Clone, Copy)]
pub(super) struct PrefixMatch {
    end: usize,
    groups: [Option<(usize, usize)>; MAX_GROUPS],
}

impl Prefix {
    pub(super) fn new(pattern: &str) -> Self {
        let mut program = Program::default();
        program.add(pattern);
        assert!(
            program.groups() <= MAX_GROUPS,
            "{pattern} has too many groups"
        );
        Self { program }
    }

    /// The match that a backtracking regular expression finds first.
    pub(super) fn find(&self, digits: &[u8]) -> Option<PrefixMatch> {
        self.run_from(
            0,
            digits,
            PrefixMatch {
                end: 0,
                groups: [None; MAX_GROUPS],
            },
        )
    }

    /// Runs the program from a step. A fork tries its first branch to the end before the second.
    fn run_from(&self, mut at: u16, digits: &[u8], mut found: PrefixMatch) -> Option<PrefixMatch> {
        loop {
            match self.program.step(at) {
                Step::Digit(set) => {
                    let digit = digits.get(found.end)?;
                    if set & (1 << digit) == 0 {
                        return None;
                    }
                    found.end += 1;
                }
                Step::End if found.end < digits.len() => return None,
                Step::End => {}
                Step::Fork(second) => {
                    if let Some(found) = self.run_from(at + 1, digits, found) {
                        return Some(found);
                    }
                    at = second;
                    continue;
                }
                Step::Jump(to) => {
                    at = to;
                    continue;
                }
                Step::Open(group) => found.groups[group] = Some((found.end, found.end)),
                Step::Close(group) => {
                    let (start, _) = found.groups[group].expect("a group opens before it closes");
                    found.groups[group] = Some((start, found.end));
                }
                Step::Accept(_) => return Some(found),
            }
            at += 1;
        }
    }

    /// Removes this prefix, or rewrites it by the rule.
    ///
    /// As in libphonenumber, the rule applies only if the last group took part in the match.
    pub(super) fn strip(&self, digits: &Digits, rule: Option<&Rewrite>) -> Option<Digits> {
        let found = self.find(digits)?;
        let last_group = self
            .program
            .groups()
            .checked_sub(1)
            .and_then(|last| found.groups[last]);
        let mut number = Digits::default();
        if let (Some(rule), Some(_)) = (rule, last_group) {
            rule.write(&mut number, digits, &found);
        }
        number.extend(&digits[found.end..]);
        Some(number)
    }
}

impl PrefixMatch {
    pub(super) fn end(&self) -> usize {
        self.end
    }
}

/// The replacement of a prefix.
pub(super) struct Rewrite(Vec<Piece>);

enum Piece {
    Digit(u8),
    Group(usize),
}

impl Rewrite {
    /// Parses a rule such as `9$1`.
    pub(super) fn new(rule: &str) -> Self {
        let mut bytes = rule.bytes();
        let mut pieces = Vec::new();
        while let Some(byte) = bytes.next() {
            pieces.push(match byte {
                b'$' => {
                    let number = bytes.next().expect("a group's number follows its sign");
                    Piece::Group(usize::from(number - b'1'))
                }
                digit => Piece::Digit(digit - b'0'),
            });
        }
        Self(pieces)
    }

    fn write(&self, number: &mut Digits, digits: &[u8], found: &PrefixMatch) {
        for piece in &self.0 {
            match *piece {
                Piece::Digit(digit) => number.push(digit),
                Piece::Group(group) => {
                    if let Some((start, end)) = found.groups[group] {
                        number.extend(&digits[start..end]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_dropped_or_rewritten() {
        for (prefix, rule, digits, expected) in [
            ("0", None, "0301", Some("301")),
            ("0", None, "301", None),
            ("0?(?:(11)15)?", Some("9$1"), "0111523", Some("91123")),
            ("0?(?:(11)15)?", Some("9$1"), "01123", Some("1123")),
            ("([4-7]\\d{2})$|1", Some("268$1"), "456", Some("268456")),
            ("([4-7]\\d{2})$|1", Some("268$1"), "1456", Some("456")),
            (
                "(?:0|90)(?:(1[245])(\\d{4}))?",
                Some("$2"),
                "0152345",
                Some("2345"),
            ),
            (
                "(?:0|90)(?:(1[245])(\\d{4}))?",
                Some("$2"),
                "01523",
                Some("1523"),
            ),
        ] {
            let rule = rule.map(Rewrite::new);
            let values: Vec<u8> = digits.bytes().map(|digit| digit - b'0').collect();
            let stripped = Prefix::new(prefix).strip(&values.as_slice().into(), rule.as_ref());
            let text: Option<String> = stripped.map(|digits| {
                let digits = digits.iter().map(|digit| char::from(b'0' + digit));
                digits.collect()
            });
            assert_eq!(text.as_deref(), expected, "{prefix} of {digits}");
        }
    }
}
