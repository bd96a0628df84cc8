//! Secrets in the configuration.

use super::{OPTIONAL_KEYS, check_refused, parse_config};

#[test]
fn errors_name_the_unusable_secret() {
    for (text, reason) in [
        (
            "[security]\nkey = 'short'",
            "security.key: a key must be 32",
        ),
        (
            "[security]\nformer_keys = ['x']",
            "security.former_keys: a key",
        ),
        (
            "[[carrier]]\nkind = 'smpp'\nname = 'a'\npassword = 'env:NO_SUCH_VARIABLE'",
            "carrier 'a': password is env:NO_SUCH_VARIABLE",
        ),
        (
            "[[carrier]]\nkind = 'upstream'\nname = 'a'\nurl = 'http://x'\ntoken = 'file:/no/such'",
            "carrier 'a': token is file:/no/such",
        ),
        (
            "[database]\nurl = 'env:NO_SUCH_VARIABLE'",
            "database.url is env:",
        ),
    ] {
        check_refused(text, reason);
    }
}

#[test]
fn a_password_is_never_shown() {
    let config =
        parse_config("[database]\nurl = 'postgres://me:hunter2@db/x'", &[]).expect("valid");
    let shown = format!("{}{config:?}", toml::to_string(&config).expect("a table"));
    assert!(
        shown.contains("db") && !shown.contains("hunter2"),
        "{shown}"
    );
    let config = parse_config(OPTIONAL_KEYS, &[]).expect("valid");
    let shown = format!("{}{config:?}", toml::to_string(&config).expect("a table"));
    assert!(shown.contains("alpha"), "{shown}");
    for secret in ["hunter2", "c2VjcmV0"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
