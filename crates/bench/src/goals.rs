//! Goals, and how values are printed.

/// A goal and the result. `reached` is `None` if it was not measured.
pub(crate) struct Goal {
    pub(crate) text: String,
    pub(crate) measured: String,
    pub(crate) reached: Option<bool>,
}

impl Goal {
    pub(crate) fn new(text: impl Into<String>, found: Option<(String, bool)>) -> Self {
        let (measured, reached) =
            found.map_or(("not measured".into(), None), |(m, r)| (m, Some(r)));
        Self {
            text: text.into(),
            measured,
            reached,
        }
    }
}

/// What percentage `own` is of `other`.
pub(crate) fn percent(own: u64, other: u64) -> u64 {
    own * 100 / other.max(1)
}

/// Formats 42 as `0.42`.
pub(crate) fn hundredths(percent: u64) -> String {
    format!("{}.{:02}", percent / 100, percent % 100)
}

/// Rounded up, so that no value looks smaller than it is.
pub(crate) fn mebibytes(kib: u64) -> u64 {
    kib.div_ceil(1 << 10)
}
