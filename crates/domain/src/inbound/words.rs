//! The first word of a message from a handset: keywords, and the words by which people opt out.
//!
//! Case, accents, and the spaces and punctuation around a word do not matter.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// What a word asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// No more messages.
    Stop,
    /// Messages again.
    Start,
    Help,
}

/// The words that ask for something, in their compared form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    stop: Vec<String>,
    start: Vec<String>,
    help: Vec<String>,
}

const STOP: [&str; 7] = [
    "STOP",
    "STOPALL",
    "UNSUBSCRIBE",
    "CANCEL",
    "END",
    "QUIT",
    "OPTOUT",
];
const START: [&str; 3] = ["START", "UNSTOP", "YES"];
const HELP: [&str; 2] = ["HELP", "INFO"];
/// The only phrase: `OPT OUT` is `OPTOUT`.
const OPT_OUT: [&str; 2] = ["OPT", "OUT"];

impl Words {
    /// The words that everybody has, and these.
    pub fn new(stop: &[String], start: &[String], help: &[String]) -> Self {
        let all = |words: &[&str], more: &[String]| {
            let more = more.iter().map(String::as_str);
            let words = words.iter().copied().chain(more).map(compared);
            words.filter(|word| !word.is_empty()).collect()
        };
        Self {
            stop: all(&STOP, stop),
            start: all(&START, start),
            help: all(&HELP, help),
        }
    }

    /// What a text asks for, and the word after it, which may be a keyword.
    pub fn find(&self, text: &str) -> Option<(Request, Option<String>)> {
        let mut words = text
            .split_whitespace()
            .map(compared)
            .filter(|word| !word.is_empty());
        let mut first = words.next()?;
        let mut second = words.next();
        if first == OPT_OUT[0] && second.as_deref() == Some(OPT_OUT[1]) {
            (first, second) = (OPT_OUT.concat(), words.next());
        }
        let has = |words: &[String]| words.contains(&first);
        let request = if has(&self.stop) {
            Request::Stop
        } else if has(&self.start) {
            Request::Start
        } else if has(&self.help) {
            Request::Help
        } else {
            return None;
        };
        Some((request, second))
    }
}

/// The first word of a text, in its compared form.
pub fn first_word(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().map(compared);
    words.find(|word| !word.is_empty())
}

/// The form in which words are compared: upper case, without accents and without punctuation around it.
pub fn compared(word: &str) -> String {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let plain = word.nfkd().filter(|c| !is_combining_mark(*c));
    plain.flat_map(char::to_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_asks_for_something() {
        let words = Words::new(
            &["ΣΤΟΠ".to_owned(), "arrêt".to_owned(), " ".to_owned()],
            &[],
            &[],
        );
        for (text, expected) in [
            ("STOP", Some((Request::Stop, None))),
            ("  stop. ", Some((Request::Stop, None))),
            ("\"Stop!\"", Some((Request::Stop, None))),
            ("Opt out", Some((Request::Stop, None))),
            ("opt OUT news", Some((Request::Stop, Some("NEWS")))),
            ("optout", Some((Request::Stop, None))),
            ("stop news please", Some((Request::Stop, Some("NEWS")))),
            ("στοπ", Some((Request::Stop, None))),
            ("Arret", Some((Request::Stop, None))),
            ("ARRÊT", Some((Request::Stop, None))),
            ("yes", Some((Request::Start, None))),
            ("Unstop", Some((Request::Start, None))),
            ("info?", Some((Request::Help, None))),
            ("please stop", None),
            ("stopping", None),
            ("opt", None),
            ("", None),
            ("…", None),
        ] {
            let expected = expected.map(|(request, word)| (request, word.map(str::to_owned)));
            assert_eq!(words.find(text), expected, "{text}");
        }
    }

    #[test]
    fn a_keyword_is_compared_without_case_accents_and_punctuation() {
        for (text, word) in [
            ("Café now", Some("CAFE")),
            ("#win 12", Some("WIN")),
            ("ﬁsh", Some("FISH")),
            ("straße", Some("STRASSE")),
            ("!!! ok", Some("OK")),
            ("  ", None),
        ] {
            assert_eq!(first_word(text).as_deref(), word, "{text}");
        }
    }
}
