//! Compiles the patterns of the numbering plans: the subset of regular expressions that libphonenumber uses, over
//! digits.
//!
//! A pattern is parsed into a tree, and the tree is written as a program. `prefix` runs a program step by step to find
//! captured groups; `automaton` merges many programs into one table.

use std::iter::Peekable;
use std::str::Bytes;

/// A set of digits: bit `n` is set for the digit `n`.
pub(super) type DigitSet = u16;

const ANY_DIGIT: DigitSet = 0b11_1111_1111;

enum Node {
    /// One digit of the set.
    Digit(DigitSet),
    /// The end of the number: `$`.
    End,
    Sequence(Vec<Node>),
    /// The first alternative that leads to a match: `a|b`.
    Either(Vec<Node>),
    /// As often as possible within the bounds: `?`, `{n}`, `{n,m}`.
    Repeat(Box<Node>, usize, usize),
    /// A capturing group: `(…)`.
    Group(usize, Box<Node>),
}

/// One step of a program. The next step follows unless stated otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Take one digit of the set.
    Digit(DigitSet),
    /// Continue only at the end of the number.
    End,
    /// Continue with the next step and, if that fails, with this one.
    Fork(u16),
    /// Continue with this step.
    Jump(u16),
    Open(usize),
    Close(usize),
    /// The pattern with this index matches the digits so far.
    Accept(u16),
}

/// Compiled patterns.
#[derive(Default)]
pub(super) struct Program {
    steps: Vec<Step>,
    starts: Vec<u16>,
    groups: usize,
}

impl Program {
    /// Adds a pattern and returns its index, which its last step accepts.
    pub(super) fn add(&mut self, pattern: &str) -> u16 {
        let mut parser = Parser {
            rest: pattern.bytes().peekable(),
            groups: 0,
        };
        let tree = parser.either();
        assert!(
            parser.rest.next().is_none(),
            "{pattern} has an unmatched bracket"
        );
        self.groups = self.groups.max(parser.groups);
        let number = step_index(self.starts.len());
        self.starts.push(self.next_index());
        self.write(&tree);
        self.steps.push(Step::Accept(number));
        number
    }

    pub(super) fn step(&self, at: u16) -> Step {
        self.steps[usize::from(at)]
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The first step of each pattern.
    pub(super) fn starts(&self) -> &[u16] {
        &self.starts
    }

    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    fn next_index(&self) -> u16 {
        step_index(self.steps.len())
    }

    fn write(&mut self, node: &Node) {
        match node {
            Node::Digit(set) => self.steps.push(Step::Digit(*set)),
            Node::End => self.steps.push(Step::End),
            Node::Sequence(parts) => parts.iter().for_each(|part| self.write(part)),
            Node::Either(parts) => self.write_either(parts),
            Node::Repeat(part, min, max) => self.write_repeat(part, *min, *max),
            Node::Group(number, part) => {
                self.steps.push(Step::Open(*number));
                self.write(part);
                self.steps.push(Step::Close(*number));
            }
        }
    }

    fn write_either(&mut self, parts: &[Node]) {
        let (last, others) = parts.split_last().expect("at least one part");
        let mut jumps = Vec::with_capacity(others.len());
        for part in others {
            let fork = self.reserve();
            self.write(part);
            jumps.push(self.reserve());
            self.steps[fork] = Step::Fork(self.next_index());
        }
        self.write(last);
        for jump in jumps {
            self.steps[jump] = Step::Jump(self.next_index());
        }
    }

    fn write_repeat(&mut self, part: &Node, min: usize, max: usize) {
        (0..min).for_each(|_| self.write(part));
        let mut forks = Vec::with_capacity(max - min);
        for _ in min..max {
            forks.push(self.reserve());
            self.write(part);
        }
        for fork in forks {
            self.steps[fork] = Step::Fork(self.next_index());
        }
    }

    /// Adds a placeholder for a step whose target is not known yet.
    fn reserve(&mut self) -> usize {
        self.steps.push(Step::Jump(u16::MAX));
        self.steps.len() - 1
    }
}

fn step_index(index: usize) -> u16 {
    u16::try_from(index).expect("the patterns of a calling code take fewer steps")
}

/// Parses a pattern. Patterns are compiled in, so one that cannot be parsed is a bug.
struct Parser<'a> {
    rest: Peekable<Bytes<'a>>,
    groups: usize,
}

impl Parser<'_> {
    fn either(&mut self) -> Node {
        let mut parts = vec![self.sequence()];
        while self.rest.next_if_eq(&b'|').is_some() {
            parts.push(self.sequence());
        }
        Node::Either(parts)
    }

    fn sequence(&mut self) -> Node {
        let mut parts = Vec::new();
        while self
            .rest
            .peek()
            .is_some_and(|&next| !matches!(next, b'|' | b')'))
        {
            let part = self.part();
            parts.push(self.repeated(part));
        }
        Node::Sequence(parts)
    }

    fn part(&mut self) -> Node {
        match self.next() {
            b'(' => self.bracket(),
            b'[' => Node::Digit(self.set()),
            b'\\' => {
                self.expect(b'd');
                Node::Digit(ANY_DIGIT)
            }
            b'$' => Node::End,
            digit => Node::Digit(1 << value(digit)),
        }
    }

    fn bracket(&mut self) -> Node {
        let number = self.groups;
        let captures = self.rest.next_if_eq(&b'?').is_none();
        if captures {
            self.groups += 1;
        } else {
            self.expect(b':');
        }
        let inner = self.either();
        self.expect(b')');
        if captures {
            Node::Group(number, Box::new(inner))
        } else {
            inner
        }
    }

    fn set(&mut self) -> DigitSet {
        let mut set = 0;
        loop {
            let first = match self.next() {
                b']' => return set,
                digit => value(digit),
            };
            let last = if self.rest.next_if_eq(&b'-').is_some() {
                value(self.next())
            } else {
                first
            };
            (first..=last).for_each(|digit| set |= 1 << digit);
        }
    }

    fn repeated(&mut self, part: Node) -> Node {
        if self.rest.next_if_eq(&b'?').is_some() {
            return Node::Repeat(Box::new(part), 0, 1);
        }
        if self.rest.next_if_eq(&b'{').is_none() {
            return part;
        }
        let min = self.count();
        let max = if self.rest.next_if_eq(&b',').is_some() {
            self.count()
        } else {
            min
        };
        self.expect(b'}');
        Node::Repeat(Box::new(part), min, max)
    }

    fn count(&mut self) -> usize {
        let mut count = 0;
        while let Some(digit) = self.rest.next_if(u8::is_ascii_digit) {
            count = count * 10 + usize::from(value(digit));
        }
        count
    }

    fn next(&mut self) -> u8 {
        self.rest.next().expect("the pattern is complete")
    }

    fn expect(&mut self, wanted: u8) {
        assert_eq!(
            self.next(),
            wanted,
            "the pattern uses only the supported syntax"
        );
    }
}

fn value(digit: u8) -> u8 {
    assert!(
        digit.is_ascii_digit(),
        "the pattern uses only the supported syntax"
    );
    digit - b'0'
}

#[cfg(test)]
mod tests {
    use super::super::automaton::Automaton;
    use super::super::prefix::Prefix;
    use super::*;

    fn values(digits: &str) -> Vec<u8> {
        digits.bytes().map(value).collect()
    }

    #[test]
    fn the_automaton_finds_the_patterns_that_match_the_whole_number() {
        let patterns = [
            r"[13]\d{2}",
            "1(?:2|3[4-6])?7",
            r"\d{1,3}",
            "(?:00|[1-9])5{2}",
        ];
        let mut program = Program::default();
        for pattern in patterns {
            program.add(pattern);
        }
        let automaton = Automaton::new(&program, |_, matching| {
            matching.iter().fold(0, |set, pattern| set | 1 << pattern)
        });
        for (digits, expected) in [
            ("", 0b0000),
            ("1", 0b0100),
            ("17", 0b0110),
            ("127", 0b0111),
            ("137", 0b0101),
            ("1347", 0b0010),
            ("1377", 0b0000),
            ("155", 0b1101),
            ("0055", 0b1000),
            ("00555", 0b0000),
        ] {
            assert_eq!(automaton.class_of(&values(digits)), expected, "{digits}");
        }
    }

    #[test]
    fn a_prefix_is_the_first_match_that_backtracking_finds() {
        for (pattern, digits, expected) in [
            ("0|01", "0123", Some(1)),
            ("01|0", "0123", Some(2)),
            ("0(1\\d)?", "0123", Some(3)),
            ("0(1\\d)?", "0", Some(1)),
            ("0?(?:(11|2)15)?", "0215", Some(4)),
            ("0?(?:(11|2)15)?", "0216", Some(1)),
            ("0?(?:(11|2)15)?", "9", Some(0)),
            ("([4-7]\\d)$|1", "41", Some(2)),
            ("([4-7]\\d)$|1", "412", None),
            ("([4-7]\\d)$|1", "112", Some(1)),
            ("0", "", None),
        ] {
            let found = Prefix::new(pattern).find(&values(digits));
            assert_eq!(
                found.map(|found| found.end()),
                expected,
                "{pattern} of {digits}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "supported syntax")]
    fn a_pattern_with_other_syntax_panics() {
        Program::default().add("1.*");
    }
}
