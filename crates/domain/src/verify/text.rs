//! The text of the message that carries a code.

use jiff::SignedDuration;

use super::OneTimeCode;

/// Stands for the code in a text.
pub const PLACEHOLDER: &str = "{code}";

/// The text around a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it does not contain {PLACEHOLDER}; write {PLACEHOLDER} where the code belongs")]
pub struct NoPlaceholder;

impl Template {
    pub fn parse(text: &str) -> Result<Self, NoPlaceholder> {
        let has_code = text.contains(PLACEHOLDER);
        has_code.then(|| Self(text.to_owned())).ok_or(NoPlaceholder)
    }

    /// The text of accounts that give none, for a code that is valid for this long.
    pub fn for_lifetime(lifetime: SignedDuration) -> Self {
        let seconds = lifetime.as_secs();
        let valid = match (seconds / 60, seconds % 60) {
            (1, 0) => "1 minute".to_owned(),
            (minutes, 0) => format!("{minutes} minutes"),
            _ => format!("{seconds} seconds"),
        };
        Self(format!(
            "{PLACEHOLDER} is your verification code. It is valid for {valid}."
        ))
    }

    /// The text with the code in it.
    pub fn fill(&self, code: &OneTimeCode) -> String {
        self.0.replace(PLACEHOLDER, code.reveal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &Template) -> String {
        template.fill(&"123456".parse().expect("digits"))
    }

    #[test]
    fn a_text_contains_the_code() {
        for (text, expected) in [
            ("{code}", Some("123456")),
            ("Acme: {code}!", Some("Acme: 123456!")),
            ("{code} or {code}", Some("123456 or 123456")),
            ("{{code}}", Some("{123456}")),
            ("Your code", None),
            ("{ code }", None),
            ("{CODE}", None),
            ("", None),
        ] {
            let template = Template::parse(text);
            assert_eq!(
                template.ok().as_ref().map(fill).as_deref(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_default_text_says_how_long_the_code_is_valid() {
        for (seconds, valid) in [
            (600, "10 minutes"),
            (60, "1 minute"),
            (3600, "60 minutes"),
            (90, "90 seconds"),
        ] {
            let template = Template::for_lifetime(SignedDuration::from_secs(seconds));
            let expected = format!("123456 is your verification code. It is valid for {valid}.");
            assert_eq!(fill(&template), expected);
        }
    }
}
