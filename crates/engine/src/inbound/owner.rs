//! Whose a text from a handset is: by its number, and by its first word where a number is shared.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use domain::inbound::number::InboundNumber;
use domain::inbound::words::{compared, first_word};
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

    fn find(&self, number: &InboundNumber, text: &str) -> Option<&Owner> {
        let entries = self.0.get(number.digits())?;
        let with = |keyword: &str| entries.iter().find(|entry| entry.keyword == keyword);
        let word = first_word(text);
        let found = word.and_then(|word| with(&word)).or_else(|| with(""));
        found.map(|entry| &entry.owner)
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

    /// The owner of a text to a number; `None` if nobody owns it.
    pub(super) async fn find(
        &self,
        number: &InboundNumber,
        text: &str,
    ) -> Result<Option<Owner>, StoreError> {
        let asked = Instant::now();
        let is_fresh = |loaded: &Arc<Loaded>| asked.duration_since(loaded.at) < FRESH_FOR;
        let loaded = match self.loaded.load_full().filter(is_fresh) {
            Some(loaded) => loaded,
            None => self.load(asked).await?,
        };
        if let Some(owner) = loaded.entries.find(number, text) {
            return Ok(Some(owner.clone()));
        }
        // An entry may have been added a moment ago.
        let loaded = self.load(asked).await?;
        Ok(loaded.entries.find(number, text).cloned())
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

    #[test]
    fn the_first_word_decides_and_the_rest_goes_to_the_default() {
        let entry = |number: &str, keyword: Option<&str>, account| OwnedNumber {
            entry: NumberEntry {
                number: InboundNumber::parse(number).expect("a number"),
                keyword: keyword.map(str::to_owned),
                account: AccountId::new(account).expect("in range"),
                url: None,
            },
            account_name: "acme".to_owned(),
            account_url: None,
        };
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
            let found = entries.find(&number, text);
            let found = found.map(|owner| (owner.account.get(), owner.keyword.as_deref()));
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
