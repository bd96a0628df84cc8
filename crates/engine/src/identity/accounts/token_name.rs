//! What people may call a token.

/// The longest name of a token, in characters.
pub const MAX_TOKEN_NAME_CHARS: usize = 64;
/// What the names of tokens begin with that were given to clients.
const OAUTH: &str = "oauth:";

/// Why a text is no name for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotATokenName {
    /// It is empty, too long, or holds control characters.
    #[error("give it a name of 1 to {MAX_TOKEN_NAME_CHARS} characters")]
    Form,
    /// It looks like one that was given to a client.
    #[error("names that begin with '{OAUTH}' are those of tokens that were given to AI clients")]
    OfClient,
}

/// Whether somebody may call a token so.
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
    fn a_token_is_called_by_a_name_that_no_client_has() {
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
