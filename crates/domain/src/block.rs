//! The operators' block list: numbers, prefixes, senders and words that no message may have.

use std::collections::HashSet;
use std::fmt;

use jiff::Timestamp;

use crate::inbound::words::compared;
use crate::number::msisdn::Msisdn;
use crate::quoted::Quoted;
use crate::sender::originator::Originator;

/// The most rules that a block list can have. Every node has all of them in memory.
pub const MAX_BLOCK_RULES: usize = 50_000;
/// The longest word of a rule.
const MAX_WORD_CHARS: usize = 50;
const PREFIX_DIGITS: std::ops::RangeInclusive<usize> = 1..=15;

/// What a rule compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockKind {
    /// The recipient.
    Number,
    /// The first digits of the recipient.
    Prefix,
    /// The originator, in any case.
    Sender,
    /// A word of the text. Case, accents, and punctuation around it do not matter.
    Word,
}

impl BlockKind {
    pub const ALL: [Self; 4] = [Self::Number, Self::Prefix, Self::Sender, Self::Word];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Prefix => "prefix",
            Self::Sender => "sender",
            Self::Word => "word",
        }
    }

    /// The number in both databases.
    pub const fn number(self) -> i16 {
        match self {
            Self::Number => 0,
            Self::Prefix => 1,
            Self::Sender => 2,
            Self::Word => 3,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Something that is blocked. The value is in the form that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlockRule {
    kind: BlockKind,
    value: String,
}

/// A rule of the block list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRecord {
    pub rule: BlockRule,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockRuleError {
    #[error(
        "{} is not a phone number; give it with its country code, such as +37120000001",
        Quoted(.0)
    )]
    Number(String),
    #[error(
        "{} is not a prefix; give the first 1 to 15 digits of numbers with their country code, such as +3712",
        Quoted(.0)
    )]
    Prefix(String),
    #[error("{} is not a sender; give a number or a name of at most 11 characters", Quoted(.0))]
    Sender(String),
    #[error("{} is not a word; give one word of at most {MAX_WORD_CHARS} letters and digits", Quoted(.0))]
    Word(String),
}

impl BlockRule {
    pub fn parse(kind: BlockKind, value: &str) -> Result<Self, BlockRuleError> {
        let value = value.trim();
        let parsed = match kind {
            BlockKind::Number => {
                let number = Msisdn::parse(value);
                let number = number.map_err(|_| BlockRuleError::Number(value.to_owned()))?;
                number.digits().to_owned()
            }
            BlockKind::Prefix => prefix(value)?,
            BlockKind::Sender => {
                let sender = Originator::parse_approved(value);
                let sender = sender.map_err(|_| BlockRuleError::Sender(value.to_owned()))?;
                compared_sender(&sender)
            }
            BlockKind::Word => word(value)?,
        };
        Ok(Self {
            kind,
            value: parsed,
        })
    }

    pub const fn kind(&self) -> BlockKind {
        self.kind
    }

    pub fn value(&self) -> &str {
        &self.value
    }

    /// The value as people read it: a number or the beginning of one has a plus.
    pub fn shown_value(&self) -> String {
        match self.kind {
            BlockKind::Number | BlockKind::Prefix => format!("+{}", self.value),
            BlockKind::Sender | BlockKind::Word => self.value.clone(),
        }
    }
}

impl fmt::Display for BlockRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.shown_value())
    }
}

fn prefix(value: &str) -> Result<String, BlockRuleError> {
    let digits = value.strip_prefix('+').unwrap_or(value);
    let is_prefix = PREFIX_DIGITS.contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    is_prefix
        .then(|| digits.to_owned())
        .ok_or_else(|| BlockRuleError::Prefix(value.to_owned()))
}

fn word(value: &str) -> Result<String, BlockRuleError> {
    let word = compared(value);
    let is_word =
        (1..=MAX_WORD_CHARS).contains(&word.chars().count()) && !word.contains(char::is_whitespace);
    is_word
        .then_some(word)
        .ok_or_else(|| BlockRuleError::Word(value.to_owned()))
}

fn compared_sender(sender: &Originator) -> String {
    sender.compared().to_ascii_uppercase()
}

/// The block list in the form in which messages are compared with it. The time that takes depends on the message, not
/// on the number of rules.
#[derive(Debug, Clone, Default)]
pub struct BlockList {
    numbers: HashSet<String>,
    prefixes: HashSet<String>,
    senders: HashSet<String>,
    words: HashSet<String>,
}

impl BlockList {
    pub fn new(rules: impl IntoIterator<Item = BlockRule>) -> Self {
        let mut list = Self::default();
        for BlockRule { kind, value } in rules {
            let set = match kind {
                BlockKind::Number => &mut list.numbers,
                BlockKind::Prefix => &mut list.prefixes,
                BlockKind::Sender => &mut list.senders,
                BlockKind::Word => &mut list.words,
            };
            set.insert(value);
        }
        list
    }

    pub fn is_empty(&self) -> bool {
        let Self {
            numbers,
            prefixes,
            senders,
            words,
        } = self;
        [numbers, prefixes, senders, words]
            .into_iter()
            .all(HashSet::is_empty)
    }

    /// Whether every message with this originator and text is blocked.
    pub fn blocks_content(&self, from: Option<&Originator>, text: &str) -> bool {
        let is_sender = |from: &Originator| self.senders.contains(&compared_sender(from));
        (!self.senders.is_empty() && from.is_some_and(is_sender))
            || (!self.words.is_empty() && self.has_word(text))
    }

    pub fn blocks_recipient(&self, to: &Msisdn) -> bool {
        let digits = to.digits();
        self.numbers.contains(digits)
            || (!self.prefixes.is_empty()
                && (1..=digits.len()).any(|length| self.prefixes.contains(&digits[..length])))
    }

    fn has_word(&self, text: &str) -> bool {
        let words = text.split(|c: char| !c.is_alphanumeric() && !is_part_of_word(c));
        words
            .filter(|word| !word.is_empty())
            .any(|word| self.words.contains(&compared(word)))
    }
}

/// Marks that combine with a letter, and those inside of words, do not end a word.
fn is_part_of_word(c: char) -> bool {
    matches!(c, '\'' | '’' | '-' | '_' | '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(kind: BlockKind, value: &str) -> BlockRule {
        BlockRule::parse(kind, value).expect("a rule")
    }

    #[test]
    fn values_are_checked_and_stored_as_they_are_compared() {
        use BlockKind::{Number, Prefix, Sender, Word};
        for (kind, value, expected) in [
            (Number, "+371 2000-0001", Some("37120000001")),
            (Number, "12345", None),
            (Prefix, "+3712", Some("3712")),
            (Prefix, "1", Some("1")),
            (Prefix, "0371", None),
            (Prefix, "", None),
            (Prefix, "12a", None),
            (Prefix, "1234567890123456", None),
            (Sender, "Acme", Some("ACME")),
            (Sender, "+37120000001", Some("37120000001")),
            (Sender, "a sender that is too long", None),
            (Word, " Casinò! ", Some("CASINO")),
            (Word, "two words", None),
            (Word, "!!!", None),
        ] {
            let parsed = BlockRule::parse(kind, value).ok();
            assert_eq!(
                parsed.as_ref().map(BlockRule::value),
                expected,
                "{kind:?} {value:?}"
            );
        }
    }

    #[test]
    fn messages_are_blocked_by_number_prefix_sender_and_word() {
        let list = BlockList::new([
            rule(BlockKind::Number, "+37120000001"),
            rule(BlockKind::Prefix, "+449"),
            rule(BlockKind::Sender, "Casino"),
            rule(BlockKind::Word, "jackpot"),
            rule(BlockKind::Word, "x-ray"),
        ]);
        for (to, expected) in [
            ("+37120000001", true),
            ("+37120000002", false),
            ("+449000000", true),
            ("+447000000", false),
        ] {
            let to = Msisdn::parse(to).expect("a number");
            assert_eq!(list.blocks_recipient(&to), expected, "{to}");
        }
        for (from, text, expected) in [
            ("CASINO", "hello", true),
            ("Casino1", "hello", false),
            ("Acme", "The JÁCKPOT is yours!", true),
            ("Acme", "win:jackpot,now", true),
            ("Acme", "jackpots", false),
            ("Acme", "an X-Ray", true),
            ("Acme", "an ex-ray", false),
            ("Acme", "", false),
        ] {
            let from = Originator::parse(from).expect("a sender");
            let blocked = list.blocks_content(Some(&from), text);
            assert_eq!(blocked, expected, "{from} {text}");
        }
        assert!(!list.is_empty());
        assert!(BlockList::default().is_empty());
    }
}
