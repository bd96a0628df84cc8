//! Mistakes in the description of a carrier, and what its tables have in common.

use std::collections::BTreeMap;
use std::fmt;

use domain::Code;

/// A key of the description that is wrong. The text names the key, as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct RuleError {
    key: String,
    problem: String,
}

impl RuleError {
    pub fn new(key: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self {
            key: key.to_string(),
            problem: problem.to_string(),
        }
    }
}

/// Our error codes, by the provider's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeTable(BTreeMap<String, Code>);

impl CodeTable {
    /// `within` is the key of the table.
    pub fn parse(within: &str, table: &BTreeMap<String, u16>) -> Result<Self, RuleError> {
        let entry = |(theirs, ours): (&String, &u16)| {
            let code = Self::parse_code(&format!("{within}.{theirs}"), *ours)?;
            Ok((theirs.clone(), code))
        };
        table.iter().map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// One of our error codes. `key` is the key that it is configured by.
    pub fn parse_code(key: &str, ours: u16) -> Result<Code, RuleError> {
        let code = Code::new(ours).filter(|code| *code != Code::FINE);
        code.ok_or_else(|| {
            let problem = format!(
                "{ours} is not an error code of this service; docs/CALLBACKS.md lists them"
            );
            RuleError::new(key, problem)
        })
    }

    pub(super) fn find(&self, theirs: &str) -> Option<Code> {
        self.0.get(theirs).copied()
    }

    /// Our code for the provider's; codes that are not in the table are a failure in its system.
    pub(super) fn code(&self, theirs: Option<&str>) -> Code {
        theirs
            .and_then(|theirs| self.find(theirs))
            .unwrap_or(Code::SYSTEM_FAILURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_must_be_errors_of_ours() {
        let table = |ours| BTreeMap::from([("27".to_owned(), ours)]);
        let codes = CodeTable::parse("report.errors", &table(43)).expect("a table");
        assert_eq!(codes.code(Some("27")), Code::ABSENT);
        assert_eq!(codes.code(Some("28")), Code::SYSTEM_FAILURE);
        assert_eq!(codes.code(None), Code::SYSTEM_FAILURE);
        for ours in [0, 18, 65535] {
            let error = CodeTable::parse("report.errors", &table(ours)).expect_err("no code");
            let start = format!("report.errors.27: {ours} is not an error code");
            assert!(error.to_string().starts_with(&start), "{error}");
        }
    }
}
