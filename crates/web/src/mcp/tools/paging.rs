//! Pages of lists that REST returns whole, or by offset.

use domain::ids::MAX_ID;
use serde_json::{Value, json};

use super::{Arguments, nullable, whole};
use crate::mcp::envelope::Envelope;

pub(super) const LIMIT: &str = "limit";
pub(super) const CURSOR: &str = "cursor";
pub(super) const NEXT_CURSOR: &str = "nextCursor";
pub(super) const MAX_LIMIT: u64 = 500;
const DEFAULT_LIMIT: u64 = 100;

pub(super) fn limit_schema() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "Default 100." })
}

pub(super) fn cursor_schema() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]+$", "description": "The nextCursor of the previous page." })
}

pub(super) fn next_schema() -> Value {
    nullable("string")
}

/// A page of a list. The cursor is the number of items before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) limit: u64,
    pub(super) offset: u64,
}

impl Page {
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Envelope> {
        let what = "a whole number from 1 to 500";
        let limit = whole(arguments, LIMIT, 1, MAX_LIMIT, what)?;
        let what = "the nextCursor of the page before";
        let offset = whole(arguments, CURSOR, 0, MAX_ID, what)?;
        Ok(Self {
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            offset: offset.unwrap_or(0),
        })
    }

    /// Takes the page out of the whole list.
    pub(super) fn of(self, list: Vec<Value>) -> (Vec<Value>, Option<String>) {
        let skipped = usize::try_from(self.offset).unwrap_or(usize::MAX);
        self.cut(list.into_iter().skip(skipped).collect())
    }

    /// Cuts a list that begins with this page. Returns the page and the cursor of the next one.
    pub(super) fn cut(self, mut list: Vec<Value>) -> (Vec<Value>, Option<String>) {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let has_more = list.len() > limit;
        list.truncate(limit);
        let next = has_more.then(|| (self.offset + self.limit).to_string());
        (list, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools::object;

    #[test]
    fn pages_follow_each_other_without_gaps() {
        let all: Vec<Value> = (0..7).map(Value::from).collect();
        for (limit, pages) in [(1, 7), (3, 3), (7, 1), (500, 1)] {
            let mut seen = Vec::new();
            let mut cursor = Value::Null;
            for number in 1..=pages {
                let arguments = object(json!({ LIMIT: limit, CURSOR: cursor }));
                let page = Page::read(&arguments).expect("a page");
                let (items, next) = page.of(all.clone());
                seen.extend(items);
                assert_eq!(next.is_some(), number < pages, "{limit}: page {number}");
                cursor = json!(next);
            }
            assert_eq!(seen, all, "{limit}");
        }
        let past = Page {
            limit: 2,
            offset: MAX_ID,
        };
        assert_eq!(past.of(all), (Vec::new(), None));
    }

    #[test]
    fn a_page_has_limits() {
        for (arguments, valid) in [
            (json!({}), true),
            (json!({ LIMIT: null, CURSOR: null }), true),
            (json!({ LIMIT: "500", CURSOR: "0" }), true),
            (json!({ LIMIT: 0 }), false),
            (json!({ LIMIT: 501 }), false),
            (json!({ LIMIT: true }), false),
            (json!({ CURSOR: "x" }), false),
            (json!({ CURSOR: -1 }), false),
        ] {
            let read = Page::read(&object(arguments.clone()));
            assert_eq!(read.is_ok(), valid, "{arguments}");
        }
    }
}
