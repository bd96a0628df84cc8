//! Texts that an account saved to send them again.

/// Maximum number of templates of an account.
pub const MAX_TEMPLATES: usize = 100;
const MAX_NAME_CHARS: usize = 40;
const MAX_TEXT_CHARS: usize = 4_000;

/// A saved text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    /// Unique within the account.
    name: String,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    #[error("give a name of 1 to {MAX_NAME_CHARS} characters")]
    Name,
    #[error("write a text of 1 to {MAX_TEXT_CHARS} characters")]
    Text,
}

impl TextTemplate {
    /// The name loses surrounding white space; the text stays as it is.
    pub fn new(name: &str, text: &str) -> Result<Self, BadTemplate> {
        let name = name.trim();
        let has_control = name.chars().any(char::is_control);
        if !(1..=MAX_NAME_CHARS).contains(&name.chars().count()) || has_control {
            return Err(BadTemplate::Name);
        }
        // PostgreSQL cannot store NUL.
        let is_blank = text.trim().is_empty() || text.contains('\0');
        if is_blank || text.chars().count() > MAX_TEXT_CHARS {
            return Err(BadTemplate::Text);
        }
        Ok(Self {
            name: name.to_owned(),
            text: text.to_owned(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_a_short_name_and_a_text() {
        let long = "x".repeat(MAX_TEXT_CHARS + 1);
        for (name, text, expected) in [
            (" Order ready ", "Hello {name}", Ok("Order ready")),
            ("x", " a ", Ok("x")),
            ("", "Hello", Err(BadTemplate::Name)),
            ("a\nb", "Hello", Err(BadTemplate::Name)),
            (&"x".repeat(41), "Hello", Err(BadTemplate::Name)),
            ("Order", " \n", Err(BadTemplate::Text)),
            ("Order", "a\0b", Err(BadTemplate::Text)),
            ("Order", &long, Err(BadTemplate::Text)),
        ] {
            let read = TextTemplate::new(name, text);
            let got = read.as_ref().map(TextTemplate::name).map_err(|bad| *bad);
            assert_eq!(got, expected, "{name:?}");
        }
    }
}
