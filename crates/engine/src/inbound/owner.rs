//! Whose a text from a handset is: by its number, and by its first word where a number is shared.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use domain::inbound::language::Language;
use domain::inbound::number::InboundNumber;
use domain::inbound::words::{Request, Words, compared, first_word};
use domain::ports::{InboundStore, OwnedNumber, Store, StoreError};
use domain::{AccountId, CallbackUrl};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Entries that are older are read again before they are used.
const FRESH_FOR: Duration = Duration::from_millis(100);

/// The account that a text belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) account: AccountId,
    /// As it was configured, if the text begins with it.
    pub(super) keyword: Option<String>,
    pub(super) url: Option<CallbackUrl>,
}

/// A request such as STOP, and the accounts that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskedOf {
    pub(super) request: Request,
    pub(super) language: Language,
    /// At least one: those that have the number, or the one that has the keyword after the word.
    pub(super) accounts: Vec<AccountId>,
}

/// Whose a text is, and what it asks for.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// `None` if nobody owns it.
    pub(super) owner: Option<Owner>,
    pub(super) asked: Option<AskedOf>,
}

/// Finds owners. All entries are in memory, and read again as texts come, so that a change takes effect at once.
pub(super) struct Owners {
    store: Arc<dyn InboundStore>,
    loaded: ArcSwapOption<Loaded>,
    loading: Mutex<()>,
}

struct Loaded {
    at: Instant,
    entries: Entries,
}

/// The entries of each number, by its digits.
#[derive(Default)]
struct Entries(HashMap<String, Vec<Entry>>);

struct Entry {
    /// In its compared form; empty takes what no keyword takes.
    keyword: String,
    owner: Owner,
}

impl Entries {
    fn new(numbers: Vec<OwnedNumber>) -> Self {
        let mut entries: HashMap<String, Vec<Entry>> = HashMap::new();
        for number in numbers {
            let OwnedNumber {
                entry,
                account_name: _,
                account_url,
            } = number;
            let keyword = entry.keyword.as_deref().map(compared).unwrap_or_default();
            let owner = Owner {
                account: entry.account,
                keyword: entry.keyword,
                url: entry.url.or(account_url),
            };
            let of_number = entries.entry(entry.number.digits().to_owned()).or_default();
            of_number.push(Entry { keyword, owner });
        }
        Self(entries)
    }

    fn find(&self, number: &InboundNumber, text: &str, words: &Words) -> Found {
        let Some(entries) = self.0.get(number.digits()) else {
            return Found::default();
        };
        let with = |keyword: &str| entries.iter().find(|entry| entry.keyword == keyword);
        let by_keyword = first_word(text).and_then(|word| with(&word));
        // Nobody can take STOP away from handsets, but a keyword may be INFO.
        let asked = words
            .find(text)
            .filter(|asked| asked.request == Request::Stop || by_keyword.is_none());
        let Some(asked) = asked else {
            let entry = by_keyword.or_else(|| with(""));
            return Found {
                owner: entry.map(|entry| entry.owner.clone()),
                asked: None,
            };
        };
        let of_keyword = asked.keyword.as_deref().and_then(with);
        let mut accounts: Vec<AccountId> = match of_keyword {
            Some(entry) => vec![entry.owner.account],
            None => entries.iter().map(|entry| entry.owner.account).collect(),
        };
        accounts.sort_unstable();
        accounts.dedup();
        let only = entries.first().filter(|_| accounts.len() == 1);
        let entry = of_keyword.or(by_keyword).or_else(|| with("")).or(only);
        Found {
            owner: entry.map(|entry| entry.owner.clone()),
            asked: Some(AskedOf {
                request: asked.request,
                language: asked.language,
                accounts,
            }),
        }
    }
}

impl Owners {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            loaded: ArcSwapOption::empty(),
            loading: Mutex::default(),
        }
    }

    /// Whose a text to a number is.
    pub(super) async fn find(
        &self,
        number: &InboundNumber,
        text: &str,
        words: &Words,
    ) -> Result<Found, StoreError> {
        let asked = Instant::now();
        let is_fresh = |loaded: &Arc<Loaded>| asked.duration_since(loaded.at) < FRESH_FOR;
        let loaded = match self.loaded.load_full().filter(is_fresh) {
            Some(loaded) => loaded,
            None => self.load(asked).await?,
        };
        let found = loaded.entries.find(number, text, words);
        if found.owner.is_some() {
            return Ok(found);
        }
        // An entry may have been added a moment ago.
        let loaded = self.load(asked).await?;
        Ok(loaded.entries.find(number, text, words))
    }

    /// Entries that were read after this time. Many who ask at once cause one read.
    async fn load(&self, asked: Instant) -> Result<Arc<Loaded>, StoreError> {
        let _loading = self.loading.lock().await;
        let loaded = self.loaded.load_full();
        if let Some(loaded) = loaded.filter(|loaded| loaded.at > asked) {
            return Ok(loaded);
        }
        let at = Instant::now();
        let entries = Entries::new(self.store.list_numbers().await?);
        let loaded = Arc::new(Loaded { at, entries });
        self.loaded.store(Some(loaded.clone()));
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use domain::ports::NumberEntry;

    use super::*;

    fn entry(number: &str, keyword: Option<&str>, account: u64) -> OwnedNumber {
        OwnedNumber {
            entry: NumberEntry {
                number: InboundNumber::parse(number).expect("a number"),
                keyword: keyword.map(str::to_owned),
                account: AccountId::new(account).expect("in range"),
                url: None,
            },
            account_name: "acme".to_owned(),
            account_url: None,
        }
    }

    #[test]
    fn the_first_word_decides_and_the_rest_goes_to_the_default() {
        let words = Words::new(&[], &[], &[]);
        let entries = Entries::new(vec![
            entry("1234", None, 1),
            entry("1234", Some("Café"), 2),
            entry("+37120000001", Some("join"), 3),
        ]);
        for (number, text, expected) in [
            ("1234", "hello", Some((1, None))),
            ("1234", "", Some((1, None))),
            ("1234", "café please", Some((2, Some("Café")))),
            ("1234", " CAFE! please", Some((2, Some("Café")))),
            ("1234", "cafés", Some((1, None))),
            ("+37120000001", "JOIN", Some((3, Some("join")))),
            ("+37120000001", "hello", None),
            ("+37120000002", "join", None),
        ] {
            let number = InboundNumber::parse(number).expect("a number");
            let found = entries.find(&number, text, &words).owner;
            let found = found
                .as_ref()
                .map(|owner| (owner.account.get(), owner.keyword.as_deref()));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn stop_is_for_everybody_on_the_number_or_for_one_keyword() {
        let entries = Entries::new(vec![
            entry("1234", Some("info"), 3),
            entry("1234", Some("news"), 2),
            entry("1234", None, 1),
            entry("5678", Some("news"), 2),
            entry("5678", Some("club"), 3),
            entry("9999", Some("win"), 4),
        ]);
        let words = Words::new(&[], &[], &[]);
        for (number, text, owner, accounts) in [
            ("1234", "STOP", Some(1), Some(&[1, 2, 3][..])),
            ("1234", "stop please", Some(1), Some(&[1, 2, 3])),
            ("1234", "Stop News", Some(2), Some(&[2])),
            ("1234", "opt out news", Some(2), Some(&[2])),
            ("1234", "START", Some(1), Some(&[1, 2, 3])),
            ("1234", "HELP news", Some(2), Some(&[2])),
            ("1234", "INFO", Some(3), None),
            ("1234", "hello", Some(1), None),
            ("5678", "STOP", None, Some(&[2, 3])),
            ("5678", "stop club", Some(3), Some(&[3])),
            ("5678", "hello", None, None),
            ("9999", "STOP", Some(4), Some(&[4])),
            ("9999", "hello", None, None),
            ("7777", "STOP", None, None),
        ] {
            let number = InboundNumber::parse(number).expect("a number");
            let found = entries.find(&number, text, &words);
            let found_owner = found.owner.map(|owner| owner.account.get());
            assert_eq!(found_owner, owner, "{number} {text}");
            let found_accounts = found.asked.map(|asked| {
                let ids = asked.accounts.iter().map(|account| account.get());
                ids.collect::<Vec<u64>>()
            });
            assert_eq!(found_accounts.as_deref(), accounts, "{number} {text}");
        }
    }
}
