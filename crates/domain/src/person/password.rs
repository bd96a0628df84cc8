//! Passwords: which ones may be chosen, and what is kept of them.

use std::fmt;

use super::Email;

/// The fewest characters of a password.
pub const MIN_PASSWORD_CHARS: usize = 12;
/// The most; a longer one is not typed by anybody.
const MAX_PASSWORD_CHARS: usize = 256;
/// So many characters must be left of a password when the words that everybody tries are taken out of it.
const MIN_OWN_CHARS: usize = 6;
/// So many different characters a password must have.
const MIN_DIFFERENT_CHARS: usize = 5;

/// What everybody tries first, in small letters; longer ones before those that they contain.
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

/// A password that somebody typed. Never logged: its debug form is blank.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// Why a password may not be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WeakPassword {
    /// Too short.
    #[error("This is shorter than {MIN_PASSWORD_CHARS} characters.")]
    Short,
    /// Too long.
    #[error("Use at most {MAX_PASSWORD_CHARS} characters.")]
    Long,
    /// Hardly anything but what everybody tries.
    #[error("This is one of the passwords that are tried first. Add words of your own.")]
    Common,
    /// The same few characters again and again.
    #[error("This repeats the same few characters. Use several words.")]
    Monotonous,
}

impl Password {
    /// What somebody typed to sign in.
    pub fn given(text: String) -> Self {
        Self(text)
    }

    /// What somebody chose for the first time.
    pub fn choose(text: String, email: &Email) -> Result<Self, WeakPassword> {
        let chars = text.chars().count();
        if chars < MIN_PASSWORD_CHARS {
            return Err(WeakPassword::Short);
        }
        if chars > MAX_PASSWORD_CHARS {
            return Err(WeakPassword::Long);
        }
        let small = text.to_lowercase();
        if different_chars(&small) < MIN_DIFFERENT_CHARS {
            return Err(WeakPassword::Monotonous);
        }
        if own_chars(small, email) < MIN_OWN_CHARS {
            return Err(WeakPassword::Common);
        }
        Ok(Self(text))
    }

    /// The password itself, to be hashed.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

fn different_chars(text: &str) -> usize {
    let mut chars: Vec<char> = text.chars().collect();
    chars.sort_unstable();
    chars.dedup();
    chars.len()
}

/// How many letters and digits are left without what anybody could guess.
fn own_chars(mut small: String, email: &Email) -> usize {
    let (whole, local) = (email.as_str(), email.local_part());
    for guess in [whole, local].iter().chain(COMMON) {
        if guess.chars().count() > 2 {
            small = small.replace(guess, "");
        }
    }
    small.chars().filter(|c| c.is_alphanumeric()).count()
}

/// What is kept of a password, in the PHC string format. Its debug form is blank.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Takes what the hash function gave, or what the store kept of that.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text as both databases keep it.
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
    fn the_list_is_in_small_letters_and_hides_no_longer_word() {
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
        fn what_may_be_chosen_is_kept_as_it_was_typed(text in "\\PC{0,40}") {
            let email = "ann@example.com".parse().expect("an address");
            if let Ok(password) = Password::choose(text.clone(), &email) {
                prop_assert_eq!(password.reveal(), text.as_str());
                prop_assert!(text.chars().count() >= MIN_PASSWORD_CHARS);
            }
        }
    }
}
