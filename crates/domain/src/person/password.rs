//! Passwords: which ones may be chosen, and their hashes.

use std::fmt;

use super::Email;

pub const MIN_PASSWORD_CHARS: usize = 12;
/// Nobody types a longer one.
const MAX_PASSWORD_CHARS: usize = 256;
/// How many characters must remain after common words are removed.
const MIN_OWN_CHARS: usize = 6;
const MIN_DISTINCT_CHARS: usize = 5;

/// Common passwords in lower case; longer ones come before those that they contain.
const COMMON: &[&str] = &[
    "correcthorsebatterystaple",
    "abcdefghijklmnopqrstuvwxyz",
    "administrator",
    "switchboard",
    "1234567890",
    "0123456789",
    "0987654321",
    "9876543210",
    "abcdefghij",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "123456789",
    "987654321",
    "asdfghjkl",
    "qazwsxedc",
    "zaq12wsx",
    "1qaz2wsx",
    "1q2w3e4r",
    "passw0rd",
    "p@ssw0rd",
    "p@ssword",
    "password",
    "passwort",
    "12345678",
    "iloveyou",
    "trustno1",
    "football",
    "baseball",
    "princess",
    "sunshine",
    "superman",
    "starwars",
    "computer",
    "internet",
    "operator",
    "changeme",
    "whatever",
    "letmein",
    "welcome",
    "zxcvbnm",
    "default",
    "charlie",
    "michael",
    "shadow",
    "monkey",
    "dragon",
    "master",
    "secret",
    "qwerty",
    "123456",
    "654321",
    "abc123",
    "admin",
    "login",
    "hello",
];

/// A password in plain text. It is never logged, so its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeakPassword {
    #[error("This is shorter than {MIN_PASSWORD_CHARS} characters.")]
    Short,
    #[error("Use at most {MAX_PASSWORD_CHARS} characters.")]
    Long,
    /// Little more than common words.
    #[error("This is one of the passwords that are tried first. Add words of your own.")]
    Common,
    #[error("This repeats the same few characters. Use several words.")]
    Monotonous,
}

impl Password {
    /// A password typed to sign in; it is not checked.
    pub fn given(text: String) -> Self {
        Self(text)
    }

    /// A password chosen by a person; it is checked.
    pub fn choose(text: String, email: &Email) -> Result<Self, WeakPassword> {
        let chars = text.chars().count();
        if chars < MIN_PASSWORD_CHARS {
            return Err(WeakPassword::Short);
        }
        if chars > MAX_PASSWORD_CHARS {
            return Err(WeakPassword::Long);
        }
        let lower = text.to_lowercase();
        if distinct_chars(&lower) < MIN_DISTINCT_CHARS {
            return Err(WeakPassword::Monotonous);
        }
        if own_chars(lower, email) < MIN_OWN_CHARS {
            return Err(WeakPassword::Common);
        }
        Ok(Self(text))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

fn distinct_chars(text: &str) -> usize {
    let mut chars: Vec<char> = text.chars().collect();
    chars.sort_unstable();
    chars.dedup();
    chars.len()
}

/// How many letters and digits remain without common words and the email address.
fn own_chars(mut lower: String, email: &Email) -> usize {
    let (whole, local) = (email.as_str(), email.local_part());
    for guess in [whole, local].iter().chain(COMMON) {
        if guess.chars().count() > 2 {
            lower = lower.replace(guess, "");
        }
    }
    lower.chars().filter(|c| c.is_alphanumeric()).count()
}

/// The hash of a password in the PHC string format. Its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choose(text: &str) -> Result<(), WeakPassword> {
        let email = "ann.smith@example.com".parse().expect("an address");
        Password::choose(text.to_owned(), &email).map(drop)
    }

    #[test]
    fn short_and_common_passwords_are_refused() {
        for (text, expected) in [
            ("violet tram eleven", Ok(())),
            ("Lz8#kQ2!vR5m", Ok(())),
            ("ünïcödé wörds", Ok(())),
            ("my sunshine over harbour", Ok(())),
            ("", Err(WeakPassword::Short)),
            ("elevenchars", Err(WeakPassword::Short)),
            ("ääääääääääa", Err(WeakPassword::Short)),
            ("passwordpassword", Err(WeakPassword::Common)),
            ("Password!2024", Err(WeakPassword::Common)),
            ("123456789012", Err(WeakPassword::Common)),
            ("qwertyuiop12", Err(WeakPassword::Common)),
            ("CorrectHorseBatteryStaple", Err(WeakPassword::Common)),
            ("ann.smith@example.com", Err(WeakPassword::Common)),
            ("Ann.Smith2024", Err(WeakPassword::Common)),
            ("switchboard-admin", Err(WeakPassword::Common)),
            ("aaaaaaaaaaaaaaa", Err(WeakPassword::Monotonous)),
            ("abababababab", Err(WeakPassword::Monotonous)),
            ("            ", Err(WeakPassword::Monotonous)),
        ] {
            assert_eq!(choose(text), expected, "{text:?}");
        }
        assert_eq!(choose(&"violet tram ".repeat(30)), Err(WeakPassword::Long));
    }

    #[test]
    fn the_list_is_lower_case_with_longer_words_first() {
        for (at, word) in COMMON.iter().enumerate() {
            assert_eq!(*word, word.to_lowercase());
            for earlier in &COMMON[..at] {
                assert!(!word.contains(earlier), "{word} stands behind {earlier}");
            }
        }
    }

    #[test]
    fn a_password_never_shows_in_debug_output() {
        let shown = format!(
            "{:?} {:?}",
            Password::given("hunter2".to_owned()),
            PasswordHash::new("$argon2id$".to_owned())
        );
        assert_eq!(shown, "Password(…) PasswordHash(…)");
    }

    proptest! {
        #[test]
        fn a_chosen_password_is_not_changed(text in "\\PC{0,40}") {
            let email = "ann@example.com".parse().expect("an address");
            if let Ok(password) = Password::choose(text.clone(), &email) {
                prop_assert_eq!(password.reveal(), text.as_str());
                prop_assert!(text.chars().count() >= MIN_PASSWORD_CHARS);
            }
        }
    }
}
