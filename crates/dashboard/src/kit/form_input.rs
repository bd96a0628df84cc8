//! A form that is shown again: what was typed, and the problem of each field.

use engine::Invalid;
use requests::field_name;

use crate::kit::form::Form;

/// The values and problems of the fields of a form.
#[derive(Default)]
pub(crate) struct FormInput {
    fields: Vec<(&'static str, String)>,
    problems: Vec<(&'static str, String)>,
}

impl FormInput {
    pub(crate) fn with_defaults(fields: Vec<(&'static str, String)>) -> Self {
        Self {
            fields,
            problems: Vec::new(),
        }
    }

    /// Reads fields of a form, without surrounding white space.
    pub(crate) fn from_form(form: &Form, names: &[&'static str]) -> Self {
        let field = |name: &&'static str| {
            let values: Vec<&str> = form.all(name).map(str::trim).collect();
            (*name, values.join(" "))
        };
        Self::with_defaults(names.iter().map(field).collect())
    }

    /// The value of a field. Several fields with the same name are joined by spaces.
    pub(crate) fn text(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, text)| text)
    }

    /// The value of a field, unless it is empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Whether the checkbox with this value is ticked.
    pub(crate) fn is_ticked(&self, name: &str, value: &str) -> bool {
        self.text(name)
            .split_whitespace()
            .any(|ticked| ticked == value)
    }

    pub(crate) fn refuse(&mut self, name: &'static str, problem: impl std::fmt::Display) {
        self.problems.push((name, sentence(&problem.to_string())));
    }

    pub(crate) fn problem(&self, name: &str) -> Option<&str> {
        let found = self.problems.iter().find(|(known, _)| *known == name);
        found.map(|(_, problem)| problem.as_str())
    }

    pub(crate) fn is_refused(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Returns `false` if the form does not have the field.
    pub(crate) fn refuse_invalid(&mut self, invalid: &Invalid) -> bool {
        let field = field_name(invalid.field);
        let has_it = self.fields.iter().any(|(name, _)| *name == field);
        if has_it {
            self.refuse(field, &invalid.reason);
        }
        has_it
    }
}

/// Adds a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    let mut sentence = first.unwrap_or_default() + letters.as_str();
    if !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

#[cfg(test)]
mod tests {
    use engine::Field;

    use super::*;

    #[test]
    fn problems_are_sentences() {
        for (text, expected) in [
            ("it is missing", "It is missing."),
            ("'x' is none", "'x' is none."),
            ("Give one.", "Give one."),
            ("", "."),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }

    #[test]
    fn a_refused_form_keeps_what_was_typed() {
        let mut typed = FormInput::with_defaults(vec![
            ("name", "Acme".to_owned()),
            ("route", "a b".to_owned()),
        ]);
        assert!(!typed.is_refused());
        let invalid = |field, reason: &str| Invalid {
            field,
            reason: reason.to_owned(),
            code: None,
        };
        assert!(typed.refuse_invalid(&invalid(Field::SenderName, "it is taken")));
        assert!(!typed.refuse_invalid(&invalid(Field::Udh, "it is odd")));
        assert_eq!(typed.problem("name"), Some("It is taken."));
        assert_eq!((typed.text("name"), typed.given("none")), ("Acme", None));
        assert!(typed.is_ticked("route", "b") && !typed.is_ticked("route", "c"));
    }
}
