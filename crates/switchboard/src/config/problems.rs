//! What is wrong with a configuration: everything at once, and where each of it is set.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// Where a key is set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Line(PathBuf, usize),
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// Where each key is set. Keys are written as `limits.in_flight`; the items of lists have numbers: `carrier.1.window`.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<String, Place>);

impl Places {
    /// The places of the keys in a file.
    pub(super) fn from_file(file: &Path, text: &str, table: &DeTable<'_>) -> Self {
        let mut places = Self::default();
        places.add_table("", table, &|at| {
            Place::Line(file.to_owned(), line(text, at))
        });
        places
    }

    /// The places within an item of a list, such as `carrier.1`.
    pub(super) fn of_item(self, item: &str) -> Self {
        let within = |(key, place): (String, Place)| {
            let key = key.strip_prefix(item)?;
            let key = key.strip_prefix('.').or(key.is_empty().then_some(key))?;
            Some((key.to_owned(), place))
        };
        Self(self.0.into_iter().filter_map(within).collect())
    }

    /// The same places, of an item of a list.
    pub(crate) fn as_item(&self, item: &str) -> Self {
        let within = |(key, place): (&String, &Place)| match key.as_str() {
            "" => (item.to_owned(), place.clone()),
            key => (join(item, key), place.clone()),
        };
        Self(self.0.iter().map(within).collect())
    }

    /// A key is set by an environment variable.
    pub(super) fn set_by_variable(&mut self, key: &str, variable: &str) {
        let place = Place::Variable(variable.to_owned());
        self.0.insert(key.to_owned(), place);
    }

    fn add_table(&mut self, within: &str, table: &DeTable<'_>, place: &impl Fn(usize) -> Place) {
        for (key, value) in table {
            let path = join(within, key.get_ref());
            self.0.insert(path.clone(), place(key.span().start));
            match value.get_ref() {
                DeValue::Table(table) => self.add_table(&path, table, place),
                DeValue::Array(items) => {
                    for (index, item) in items.iter().enumerate() {
                        let path = join(&path, &(index + 1).to_string());
                        self.0.insert(path.clone(), place(item.span().start));
                        if let DeValue::Table(table) = item.get_ref() {
                            self.add_table(&path, table, place);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The place of the first key that a text names. Within an item of a list, the item's place if it names none.
    fn find(&self, within: &str, text: &str) -> Option<&Place> {
        let is_key = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let words = text
            .split(|c| !is_key(c))
            .map(|word| word.trim_end_matches('.'));
        let words = words.filter(|word| !word.is_empty());
        let named = |word: &str| match within.split_once('.') {
            None => self.0.get(word).filter(|_| word.contains('.')),
            Some((list, _)) => {
                let key = word
                    .strip_prefix(list)
                    .and_then(|key| key.strip_prefix('.'));
                self.0.get(&join(within, key.unwrap_or(word)))
            }
        };
        let mut words = words.peekable();
        let first = words.peek().copied();
        let section = || first.and_then(|word| self.0.get(word.split('.').next()?));
        let around = || {
            if within.is_empty() {
                section()
            } else {
                self.0.get(within)
            }
        };
        words.find_map(named).or_else(around)
    }
}

/// Joins the parts of a key.
pub(super) fn join(within: &str, key: &str) -> String {
    if within.is_empty() {
        return key.to_owned();
    }
    format!("{within}.{key}")
}

fn line(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// A setting that is wrong. Its text names the key.
#[derive(Debug)]
pub(super) struct Mistake {
    /// The item of a list that it is in, such as `carrier.1`; otherwise empty.
    within: String,
    error: anyhow::Error,
}

impl Mistake {
    /// A mistake in the item of a list.
    pub(super) fn in_item(list: &str, index: usize, error: anyhow::Error) -> Self {
        Self {
            within: join(list, &(index + 1).to_string()),
            error,
        }
    }
}

impl From<anyhow::Error> for Mistake {
    fn from(error: anyhow::Error) -> Self {
        Self {
            within: String::new(),
            error,
        }
    }
}

#[derive(Debug)]
struct Problem {
    place: Option<Place>,
    text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.text)
    }
}

/// Everything that is wrong with a configuration.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = self.0.as_slice() {
            return write!(f, "{problem}");
        }
        write!(f, "{} settings are wrong:", self.0.len())?;
        for problem in &self.0 {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl Problems {
    /// A file that is not TOML.
    pub(super) fn add_syntax(&mut self, file: &Path, text: &str, error: &toml::de::Error) {
        let at = error.span().map_or(0, |span| span.start);
        self.0.push(Problem {
            place: Some(Place::Line(file.to_owned(), line(text, at))),
            text: format!("this is not valid TOML: {}", error.message()),
        });
    }

    /// A key with a value that it cannot have, or a key that does not exist.
    pub(super) fn add_value(&mut self, places: &Places, key: &str, message: &str) {
        self.0.push(Problem {
            place: places.0.get(key).cloned(),
            text: format!("{key}: {message}"),
        });
    }

    /// A key has one problem: what follows from the first one is left out.
    pub(super) fn add_mistake(&mut self, places: &Places, mistake: &Mistake) {
        let text = format!("{:#}", mistake.error);
        let place = places.find(&mistake.within, &text).cloned();
        if place.is_none() || self.0.iter().all(|problem| problem.place != place) {
            self.0.push(Problem { place, text });
        }
    }

    /// The line and the text of each problem.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Option<usize>, &str)> {
        self.0.iter().map(|problem| match &problem.place {
            Some(Place::Line(_, line)) => (Some(*line), problem.text.as_str()),
            Some(Place::Variable(_)) | None => (None, problem.text.as_str()),
        })
    }

    /// An error if there is a problem.
    pub(super) fn into_result(mut self) -> Result<(), Self> {
        if self.0.is_empty() {
            return Ok(());
        }
        self.0.sort_by(|one, other| one.place.cmp(&other.place));
        Err(self)
    }
}
