//! Names of tokens.

pub const MAX_TOKEN_NAME_CHARS: usize = 64;
/// The names of tokens that were given to OAuth clients begin with this.
const OAUTH: &str = "oauth:";

/// Why a text is not a valid token name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotATokenName {
    /// It is empty, too long, or contains control characters.
    #[error("give it a name of 1 to {MAX_TOKEN_NAME_CHARS} characters")]
    Form,
    /// It looks like the name of a client's token.
    #[error("names that begin with '{OAUTH}' are those of tokens that were given to AI clients")]
    OfClient,
}

/// Checks a name that a person chose.
pub fn check_token_name(name: &str) -> Result<(), NotATokenName> {
    let fits = (1..=MAX_TOKEN_NAME_CHARS).contains(&name.chars().count());
    if !fits || name.trim() != name || name.chars().any(char::is_control) {
        return Err(NotATokenName::Form);
    }
    let is_of_client = name.to_lowercase().starts_with(OAUTH);
    if is_of_client {
        Err(NotATokenName::OfClient)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_name_is_short_and_not_one_of_a_client() {
        let long = "x".repeat(MAX_TOKEN_NAME_CHARS + 1);
        for (name, expected) in [
            ("backend", Ok(())),
            ("Bürö 7", Ok(())),
            ("", Err(NotATokenName::Form)),
            (" x", Err(NotATokenName::Form)),
            ("a\nb", Err(NotATokenName::Form)),
            (long.as_str(), Err(NotATokenName::Form)),
            ("oauth:access:x", Err(NotATokenName::OfClient)),
            ("OAuth:x", Err(NotATokenName::OfClient)),
        ] {
            assert_eq!(check_token_name(name), expected, "{name:?}");
        }
    }
}
