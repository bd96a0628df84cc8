//! Secrets in the configuration: the value itself, `env:NAME` or `file:PATH`.

use std::env;
use std::fs;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};

const ENV: &str = "env:";
const FILE: &str = "file:";

/// A secret in the configuration. `config check` and debug output only show that it is set.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Secret(pub(crate) String);

impl Secret {
    /// Reads the value from the environment or a file, if it refers to one. `key` names it in errors.
    pub(crate) fn resolve(&mut self, key: &str) -> anyhow::Result<()> {
        if let Some(name) = self.0.strip_prefix(ENV) {
            let value = match env::var(name) {
                Ok(value) => value,
                Err(env::VarError::NotPresent) => bail!(
                    "{key} is env:{name}, but there is no environment variable {name}; set it for this process, or use file:PATH"
                ),
                Err(env::VarError::NotUnicode(_)) => {
                    bail!("{key}: the environment variable {name} is not text")
                }
            };
            ensure!(
                !value.is_empty(),
                "{key} is env:{name}, but the environment variable {name} is empty"
            );
            self.0 = value;
        } else if let Some(path) = self.0.strip_prefix(FILE) {
            let text = fs::read_to_string(path).with_context(|| {
                format!("{key} is file:{path}, which cannot be read; put the secret alone into that file, readable for this user")
            })?;
            let value = text.trim_end_matches(['\r', '\n']).to_owned();
            ensure!(!value.is_empty(), "{key} is file:{path}, which is empty");
            self.0 = value;
        }
        Ok(())
    }
}

/// Errors do not contain the value, even if it is not a text.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self(text)),
            _ => Err(serde::de::Error::custom("must be a text in quotes")),
        }
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        "(hidden)".serialize(serializer)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use testkit::temp_dir;

    use super::*;

    fn resolved(text: &str) -> Result<String, String> {
        let mut secret = Secret(text.to_owned());
        match secret.resolve("carrier 'alpha': password") {
            Ok(()) => Ok(secret.0),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    #[test]
    fn a_secret_is_itself_or_in_a_file_or_in_the_environment() {
        let folder = temp_dir("secret").expect("a temporary folder");
        let path = folder.path().join("password");
        fs::write(&path, "hunter2\n").expect("written");
        // It is set wherever tests run.
        let search_path = env::var("PATH").expect("a search path");
        for (text, expected) in [
            ("hunter2", "hunter2"),
            ("", ""),
            (&format!("file:{}", path.display()), "hunter2"),
            ("env:PATH", &search_path),
        ] {
            assert_eq!(resolved(text).as_deref(), Ok(expected), "{text}");
        }
        fs::write(&path, "\n").expect("written");
        let error = resolved(&format!("file:{}", path.display())).expect_err("empty");
        assert!(error.contains("is empty"), "{error}");
    }

    #[test]
    fn errors_name_the_key_and_what_to_do() {
        for (text, expected) in [
            ("env:NO_SUCH_VARIABLE_HERE", "set it for this process"),
            ("file:/no/such/file", "put the secret alone into that file"),
        ] {
            let error = resolved(text).expect_err(text);
            assert!(error.contains("carrier 'alpha': password"), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }
}
