//! The first word of a message from a handset: keywords, and the words by which people opt out.
//!
//! Case, accents, and the spaces and punctuation around a word do not matter.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::language::Language;

/// What a word asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    /// No more messages.
    Stop,
    /// Messages again.
    Start,
    Help,
}

impl Request {
    pub const ALL: [Self; 3] = [Self::Stop, Self::Start, Self::Help];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Help => "help",
        }
    }

    /// The number in both databases.
    pub const fn number(self) -> i16 {
        match self {
            Self::Stop => 0,
            Self::Start => 1,
            Self::Help => 2,
        }
    }
}

/// What a text asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub request: Request,
    /// The language of the word.
    pub language: Language,
    /// The word after it, which may be a keyword.
    pub keyword: Option<String>,
}

/// The words that ask for something, in their compared form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(HashMap<String, (Request, Language)>);

/// The words that everybody has.
const WORDS: [(Request, Language, &[&str]); 20] = [
    (
        Request::Stop,
        Language::English,
        &[
            "STOP",
            "STOPALL",
            "UNSUBSCRIBE",
            "CANCEL",
            "END",
            "QUIT",
            "OPTOUT",
        ],
    ),
    (Request::Stop, Language::Dutch, &["AFMELDEN", "STOPPEN"]),
    (Request::Stop, Language::French, &["ARRET", "DESABONNER"]),
    (
        Request::Stop,
        Language::German,
        &["STOPP", "ABMELDEN", "ABBESTELLEN"],
    ),
    (Request::Stop, Language::Greek, &["ΣΤΟΠ", "ΔΙΑΓΡΑΦΗ"]),
    (Request::Stop, Language::Italian, &["ANNULLA", "BASTA"]),
    (Request::Stop, Language::Latvian, &["ATTEIKTIES", "BEIGT"]),
    (Request::Stop, Language::Portuguese, &["PARE", "SAIR"]),
    (Request::Stop, Language::Russian, &["СТОП", "ОТПИСАТЬСЯ"]),
    (Request::Stop, Language::Spanish, &["ALTO", "BAJA", "PARAR"]),
    (
        Request::Start,
        Language::English,
        &["START", "UNSTOP", "YES"],
    ),
    (Request::Help, Language::English, &["HELP", "INFO"]),
    (Request::Help, Language::Dutch, &["HULP"]),
    (Request::Help, Language::French, &["AIDE"]),
    (Request::Help, Language::German, &["HILFE"]),
    (Request::Help, Language::Greek, &["ΒΟΗΘΕΙΑ"]),
    (Request::Help, Language::Italian, &["AIUTO"]),
    (Request::Help, Language::Portuguese, &["AJUDA"]),
    (Request::Help, Language::Russian, &["ПОМОЩЬ"]),
    (Request::Help, Language::Spanish, &["AYUDA"]),
];
/// The only phrase: `OPT OUT` is `OPTOUT`.
const OPT_OUT: [&str; 2] = ["OPT", "OUT"];

impl Words {
    /// The words that everybody has, and these, which are answered in English. The meaning of a common word stays.
    pub fn new(stop: &[String], start: &[String], help: &[String]) -> Self {
        let more = [
            (Request::Stop, stop),
            (Request::Start, start),
            (Request::Help, help),
        ];
        let more = more.into_iter().flat_map(|(request, words)| {
            let words = words.iter().map(|word| compared(word));
            words.map(move |word| (word, (request, Language::English)))
        });
        let common = WORDS.into_iter().flat_map(|(request, language, words)| {
            let words = words.iter().map(|word| compared(word));
            words.map(move |word| (word, (request, language)))
        });
        let all = more.chain(common).filter(|(word, _)| !word.is_empty());
        Self(all.collect())
    }

    /// What a text asks for.
    pub fn find(&self, text: &str) -> Option<Asked> {
        let mut words = text
            .split_whitespace()
            .map(compared)
            .filter(|word| !word.is_empty());
        let mut first = words.next()?;
        let mut second = words.next();
        if first == OPT_OUT[0] && second.as_deref() == Some(OPT_OUT[1]) {
            (first, second) = (OPT_OUT.concat(), words.next());
        }
        let (request, language) = *self.0.get(&first)?;
        Some(Asked {
            request,
            language,
            keyword: second,
        })
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
            &["Lopeta".to_owned(), "Zatrzymać".to_owned(), " ".to_owned()],
            &["info".to_owned()],
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
            ("lopeta", Some((Request::Stop, None))),
            ("zatrzymac!", Some((Request::Stop, None))),
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
            let asked = words.find(text);
            let found = asked.as_ref().map(|it| (it.request, it.keyword.as_deref()));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn every_common_word_is_found_with_its_language() {
        let words = Words::new(&[], &[], &[]);
        for (request, language, list) in WORDS {
            for word in list {
                let asked = words.find(&word.to_lowercase()).expect(word);
                assert_eq!(
                    (asked.request, asked.language),
                    (request, language),
                    "{word}"
                );
            }
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
